public import PrismProtocol

/// The document of `prismctl status --json` (docs/control-protocol.md). Times are RFC 3339 in UTC.
public struct StatusReport: ControlMessage {
  /// The daemon's version.
  public var version = ""
  /// The first thing that an operator has to do, with its command; nil: reports can leave.
  public var nextStep: String?
  /// The time since the start.
  public var uptimeSeconds = 0
  /// Of the configuration that is in force.
  public var generation = 0
  /// Why the last reload was refused; empty if it was not.
  public var configFaults: [String] = []
  /// Faults that no other member says, as the log has them: of an input that can't read its source.
  public var faults: [String] = []
  /// The network and its kind.
  public var network = NetworkReport()
  /// The memory of the daemon.
  public var memory = MemoryReport()
  /// nil while remote configuration is off.
  public var remote: RemoteReport?
  /// Of the database's files.
  public var storeBytes = 0
  /// The state of the database.
  public var store = StoreReport()
  /// Reports that were refused since the start, by code; a code without any is left out.
  public var refused = NamedValues<Int>()
  /// Reports that came again since the start under a known id, and are stored once.
  public var repeated = 0
  /// The configured keys, by their ids.
  public var keys = NamedValues<KeyReport>()
  /// Each namespace that is configured or has rows.
  public var namespaces = NamedValues<NamespaceReport>()

  public init() {}
}

/// The memory of the daemon's process.
public struct MemoryReport: ControlMessage {
  /// Resident bytes and the address space.
  public var residentBytes = 0, virtualBytes = 0

  public init() {}
}

/// The kind of the network, and the reason.
public struct NetworkReport: ControlMessage {
  /// `none`, `metered` or `unmetered`.
  public var kind = "?"
  /// Of the default route; nil without one.
  public var interface: String?
  /// For people; only in the answer to `network`.
  public var reason: String?

  public init() {}

  public static func leavesOut(_ key: String) -> Bool { key == "reason" }
}

/// The use of one of the packets' keys.
public struct KeyReport: ControlMessage {
  /// Blocks that it has encrypted on this device, and the most that one key may encrypt.
  public var blocks = 0, blocksMax = 0

  public init() {}

  public init(blocks: Int, blocksMax: Int) { (self.blocks, self.blocksMax) = (blocks, blocksMax) }

  /// Half of its blocks are used: plan a new key.
  public var isHalfUsed: Bool { blocksMax > 0 && blocks >= blocksMax / 2 }

  /// For people, of a key that is half used; nil of another one.
  public func note(id: String) -> String? {
    guard isHalfUsed else { return nil }
    return
      "the key \(id) has encrypted \(blocks) of the \(blocksMax) blocks that one key may encrypt: give its namespaces "
      + "a new key under a new id"
  }
}
