/// Remote configuration in `StatusReport`.
public struct RemoteReport: ControlMessage {
  public var url = ""
  /// `asking`, `applying`, `resting`, `backoff`, `stopped`.
  public var state = ""
  /// Of the last answer that was taken; nil if there was none.
  public var updateTime: Int?, version: Int?
  /// Until when the last signed answer may be taken.
  public var validUntil: String?
  /// True if that time has passed and no signed answer came.
  public var isStale = false
  public var lastApplied: Applied?
  public var lastFailed: Failed?
  /// Questions without an answer, and why the last one had none.
  public var failuresInRow = 0
  public var cause: String?
  public var nextAskInSeconds: Int?
  public var namespaces: [String] = []
  public var probation = NamedValues<Trial>()
  /// Namespaces whose previous configuration is in force again.
  public var takenBack: [String] = []

  public init() {}

  public static let fields: [ControlField<RemoteReport>] = [
    .init("url", \.url), .init("state", \.state), .init("updateTime", \.updateTime), .init("version", \.version),
    .init("validUntil", \.validUntil), .init("isStale", \.isStale), .init("lastApplied", \.lastApplied),
    .init("lastFailed", \.lastFailed), .init("failuresInRow", \.failuresInRow), .init("cause", \.cause),
    .init("nextAskInSeconds", \.nextAskInSeconds), .init("namespaces", \.namespaces), .init("probation", \.probation),
    .init("takenBack", \.takenBack),
  ]

  public struct Applied: ControlMessage {
    public var number = 0
    public var time = ""

    public init() {}

    public static let fields: [ControlField<Applied>] = [.init("number", \.number), .init("time", \.time)]
  }

  public struct Failed: ControlMessage {
    /// nil: the answer could not be read so far.
    public var number: Int?
    public var time = "", reason = ""

    public init() {}

    public static let fields: [ControlField<Failed>] = [
      .init("number", \.number), .init("time", \.time), .init("reason", \.reason),
    ]
  }

  public struct Trial: ControlMessage {
    public var triedSeconds = 0

    public init() {}

    public static let fields: [ControlField<Trial>] = [.init("triedSeconds", \.triedSeconds)]
  }
}
