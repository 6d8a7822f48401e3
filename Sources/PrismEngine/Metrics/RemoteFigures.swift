/// The state of remote configuration, for metrics; all 0 while it is off.
public struct RemoteFigures: Sendable, Equatable {
  /// The result of a question, or of its answer; the raw value is a metric's label.
  public enum Result: String, Sendable, CaseIterable {
    case applied, unchanged, refused, unreadable, failed
    case takenBack = "taken_back"
  }

  /// Since the daemon started.
  public internal(set) var results: [Result: Int] = [:]
  /// The number of what is in force.
  public internal(set) var number: Int64 = 0
  /// Namespaces with remote configuration, and those on probation.
  public internal(set) var namespaces = 0, onProbation = 0
  /// Of the last answer that was taken, since 1970, through restarts.
  public internal(set) var lastAnswerMilliseconds: Int64 = 0
  /// Whether the last offer is refused or was taken back.
  public internal(set) var isRefused = false

  public init() {}
}
