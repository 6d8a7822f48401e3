public import PrismProtocol

/// Of the answer to `config-show`: where the daemon's own things are. The whole is printed as it came.
public struct ConfigurationReport: ControlMessage {
  /// The keys of prismd.yaml that `doctor` needs.
  public var daemon = Paths()
  /// The types of each namespace.
  public var namespaces = NamedValues<NamespaceTypes>()

  public init() {}

  /// Paths and groups of the daemon; nil if the answer has no such key.
  public struct Paths: ControlMessage {
    /// `ingest.socket`, `control.socket` and `state`.
    public var ingestSocket: String?, controlSocket: String?, state: String?
    /// Octal digits.
    public var ingestMode: String?
    /// `control.group` and `control.readers`.
    public var controlGroup: String?, controlReaders: String?

    private enum CodingKeys: String, CodingKey {
      case ingestSocket = "ingest.socket"
      case controlSocket = "control.socket"
      case state
      case ingestMode = "ingest.mode"
      case controlGroup = "control.group"
      case controlReaders = "control.readers"
    }

    public init() {}
  }

  /// A namespace's monitorList.
  public struct NamespaceTypes: ControlMessage {
    public var monitorList: [TypeEntry] = []

    public init() {}
  }

  /// An entry of a monitorList.
  public struct TypeEntry: ControlMessage {
    public var type = ""

    public init() {}
  }
}
