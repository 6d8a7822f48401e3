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

  public static let fields: [ControlField<StatusReport>] = [
    .init("version", \.version), .init("nextStep", \.nextStep), .init("uptimeSeconds", \.uptimeSeconds),
    .init("generation", \.generation),
    .init("configFaults", \.configFaults), .init("network", \.network), .init("memory", \.memory),
    .init("remote", \.remote), .init("storeBytes", \.storeBytes), .init("store", \.store),
    .init("refused", \.refused), .init("repeated", \.repeated), .init("keys", \.keys),
    .init("namespaces", \.namespaces),
  ]
}

/// The memory of the daemon's process.
public struct MemoryReport: ControlMessage {
  /// Resident bytes and the address space.
  public var residentBytes = 0, virtualBytes = 0

  public init() {}

  public static let fields: [ControlField<MemoryReport>] = [
    .init("residentBytes", \.residentBytes), .init("virtualBytes", \.virtualBytes),
  ]
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

  public static let fields: [ControlField<NetworkReport>] = [
    .init("kind", \.kind), .init("interface", \.interface), .init(ifPresent: "reason", \.reason),
  ]
}
