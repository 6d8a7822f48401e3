public import PrismProtocol

/// Commits of reports since the daemon started.
public struct CommitCounters: Sendable, Equatable {
  /// Seconds, 0.5 ms to 16 s: from handing the batches over to the store's answer, which is what a reporter waits for.
  public private(set) var duration = Histogram(from: 0.0005, doublings: 15)
  /// Reports of one commit.
  public private(set) var rows = Histogram(from: 1, doublings: 12)
  /// Commits that failed.
  public private(set) var failures = 0

  public init() {}

  mutating func committed(rows count: Int, in duration: Duration) {
    self.duration.record(duration / .seconds(1))
    rows.record(Double(count))
  }

  mutating func failed() { failures += 1 }
}
