/// Of the answer to `config-show`: where the daemon's own things are. The whole is printed as it came.
public struct ConfigurationReport: ControlMessage {
  /// The keys of prismd.yaml that `doctor` needs.
  public var daemon = Paths()
  /// The types of each namespace.
  public var namespaces = NamedValues<NamespaceTypes>()

  public init() {}

  public static let fields: [ControlField<ConfigurationReport>] = [
    .init("daemon", \.daemon), .init("namespaces", \.namespaces),
  ]

  /// Paths and groups of the daemon; nil if the answer has no such key.
  public struct Paths: ControlMessage {
    /// `ingest.socket`, `control.socket` and `state`.
    public var ingestSocket: String?, controlSocket: String?, state: String?
    /// Octal digits.
    public var ingestMode: String?
    /// `control.group` and `control.readers`.
    public var controlGroup: String?, controlReaders: String?

    public init() {}

    public static let fields: [ControlField<Paths>] = [
      .init("ingest.socket", \.ingestSocket), .init("control.socket", \.controlSocket), .init("state", \.state),
      .init("ingest.mode", \.ingestMode), .init("control.group", \.controlGroup),
      .init("control.readers", \.controlReaders),
    ]
  }

  /// A namespace's monitorList.
  public struct NamespaceTypes: ControlMessage {
    public var monitorList: [TypeEntry] = []

    public init() {}

    public static let fields: [ControlField<NamespaceTypes>] = [.init("monitorList", \.monitorList)]
  }

  /// An entry of a monitorList.
  public struct TypeEntry: ControlMessage {
    public var type = ""

    public init() {}

    public static let fields: [ControlField<TypeEntry>] = [.init("type", \.type)]
  }
}
