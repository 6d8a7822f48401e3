/// What the ingest socket does and has done since the daemon started; for status and metrics.
public struct IngestCounters: Sendable, Equatable {
  /// Why a connection was answered `busy` and closed at once; the raw value is a metric's label.
  public enum Refusal: String, Sendable, CaseIterable {
    /// `ingest.maxConnections`, or what the limit of open files leaves of it.
    case connections
    /// `ingest.maxConnectionsPerUser`.
    case user
    /// What is left is kept for users with few connections.
    case reserved
    /// No descriptor was left.
    case descriptors
  }

  /// Why a connection was closed before its client closed it; the raw value is a metric's label.
  public enum Closure: String, Sendable, CaseIterable {
    /// A request stopped in its middle.
    case stalled
    /// The client read none of its answers.
    case unread
    /// The daemon stopped.
    case stopped
  }

  /// Open now.
  public var connections = 0
  public var acceptedConnections = 0
  public var refusedConnections: [Refusal: Int] = [:]
  public var closedConnections: [Closure: Int] = [:]
  public var tally = IngestTally()
  /// What clients make the daemon hold now, and may: requests, reports before their commit, answers.
  public var memoryBytes = 0
  public var memoryBytesMax = 0
  /// How often a connection was not read from because its user's share of the memory was used up, or because its client
  /// did not read its answers.
  public var memoryPauses = 0
  public var answerPauses = 0

  public init() {}
}
