/// Counters of the inputs since the daemon started, and their present state; for status and metrics.
public struct IngestCounters: Sendable, Equatable {
  /// Why a connection was answered `busy` and closed at once; the raw value is a metric's label.
  public enum Refusal: String, Sendable, CaseIterable {
    /// `ingest.maxConnections`, or what the limit of open files leaves of it.
    case connections
    /// `ingest.maxConnectionsPerUser`.
    case user
    /// The last places are kept for users with few connections.
    case reserved
    /// No descriptor was left.
    case descriptors
  }

  /// Why a connection was closed before its client closed it; the raw value is a metric's label.
  public enum Closure: String, Sendable, CaseIterable {
    /// A request stopped in its middle.
    case stalled
    /// The client did not read its answers.
    case unread
    /// The daemon stopped.
    case stopped
  }

  /// Open now.
  public var connections = 0
  /// Connections that were accepted.
  public var acceptedConnections = 0
  /// Connections that were answered `busy` and closed at once.
  public var refusedConnections: [Refusal: Int] = [:]
  /// Connections that the daemon closed.
  public var closedConnections: [Closure: Int] = [:]
  /// Reports of all inputs.
  public var tally = IngestTally()
  /// Bytes that clients make the daemon hold now: requests, reports before their commit, answers.
  public var memoryBytes = 0
  /// The limit of `memoryBytes` (`ingest.memoryMByte`).
  public var memoryBytesMax = 0
  /// How often a connection or a group waited because its user's share of the memory was used up.
  public var memoryPauses = 0
  /// How often a connection was not read from because its client did not read its answers.
  public var answerPauses = 0

  /// All zero.
  public init() {}
}
