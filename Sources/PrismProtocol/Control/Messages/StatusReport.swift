/// The document of `prismctl status --json` (docs/control-protocol.md). Times are RFC 3339 in UTC.
public struct StatusReport: ControlMessage {
  public var version = ""
  public var uptimeSeconds = 0
  /// Of the configuration that is in force.
  public var generation = 0
  /// Why the last reload was refused; empty if it was not.
  public var configFaults: [String] = []
  public var network = NetworkReport()
  public var memory = MemoryReport()
  /// nil while remote configuration is off.
  public var remote: RemoteReport?
  /// Of the database's files.
  public var storeBytes = 0
  public var store = StoreReport()
  public var namespaces = NamedValues<NamespaceReport>()

  public init() {}

  public static let fields: [ControlField<StatusReport>] = [
    .init("version", \.version), .init("uptimeSeconds", \.uptimeSeconds), .init("generation", \.generation),
    .init("configFaults", \.configFaults), .init("network", \.network), .init("memory", \.memory),
    .init("remote", \.remote), .init("storeBytes", \.storeBytes), .init("store", \.store),
    .init("namespaces", \.namespaces),
  ]
}
