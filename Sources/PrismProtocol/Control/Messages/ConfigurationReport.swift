/// Of the answer to `config-show`: where the daemon's own things are. The whole is printed as it came.
public struct ConfigurationReport: ControlMessage {
  public var daemon = Paths()

  public init() {}

  public static let fields: [ControlField<ConfigurationReport>] = [.init("daemon", \.daemon)]

  public struct Paths: ControlMessage {
    public var ingestSocket: String?, controlSocket: String?, state: String?
    /// Octal digits.
    public var ingestMode: String?
    public var controlGroup: String?, controlReaders: String?

    public init() {}

    public static let fields: [ControlField<Paths>] = [
      .init("ingest.socket", \.ingestSocket), .init("control.socket", \.controlSocket), .init("state", \.state),
      .init("ingest.mode", \.ingestMode), .init("control.group", \.controlGroup),
      .init("control.readers", \.controlReaders),
    ]
  }
}
