public import PrismProtocol

/// Remote configuration in `StatusReport`.
public struct RemoteReport: ControlMessage {
  /// `remote.url`.
  public var url = ""
  /// `asking`, `applying`, `resting`, `backoff`, `stopped`.
  public var state = ""
  /// Of the last answer that was applied; nil if there was no such answer.
  public var updateTime: Int?, version: Int?
  /// Until when the last signed answer may be taken.
  public var validUntil: String?
  /// True if that time has passed and no signed answer came.
  public var isStale = false
  /// The last answer that was applied.
  public var lastApplied: Applied?
  /// The last answer that was refused or taken back.
  public var lastFailed: Failed?
  /// Questions in a row without an answer, and the reason for the last failure.
  public var failuresInRow = 0
  /// The reason for the last failure; nil if the last question was answered.
  public var cause: String?
  /// The time to the next question; nil while one is being asked.
  public var nextAskInSeconds: Int?
  /// The namespaces with remote configuration.
  public var namespaces: [String] = []
  /// The namespaces on probation.
  public var probation = NamedValues<Trial>()
  /// Namespaces whose previous configuration is in force again.
  public var takenBack: [String] = []

  public init() {}

  /// An answer that was applied.
  public struct Applied: ControlMessage {
    /// Its `version`, or else its `updateTime`.
    public var number = 0
    /// The time at which it was applied, RFC 3339.
    public var time = ""

    public init() {}
  }

  /// An answer that was refused or taken back.
  public struct Failed: ControlMessage {
    /// nil: the answer could not be read so far.
    public var number: Int?
    /// The time, RFC 3339, and the reason for people.
    public var time = "", reason = ""

    public init() {}
  }

  /// The state of a probation.
  public struct Trial: ControlMessage {
    /// The time in which the namespace tried to send under the new configuration.
    public var triedSeconds = 0

    public init() {}
  }
}
