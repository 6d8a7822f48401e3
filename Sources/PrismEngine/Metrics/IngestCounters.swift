/// What the ingest socket does and has done since the daemon started; for status and metrics.
public struct IngestCounters: Sendable, Equatable {
  /// Open now.
  public var connections = 0
  public var acceptedConnections = 0
  /// Answered `busy` and closed at once.
  public var refusedConnections = 0
  public var tally = IngestTally()
  /// In memory before their commit.
  public var pendingBytes = 0

  public init() {}
}
