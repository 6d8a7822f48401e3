import PrismProtocol

struct StoreCounts: Sendable, Equatable {
  /// Upper ends of the buckets of `seconds`.
  static let edges: [Double] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

  /// Which store took the last group; nil: it took no group.
  var mark: StoreMark?
  /// Seconds that the database's clock is ahead of this machine's; it judges the times of devices.
  var clockAheadSeconds: Int64 = 0
  private(set) var groups = 0
  private(set) var packets = 0
  /// Groups that were tried again after a deadlock or a serialization failure.
  var retries = 0
  /// Reports that were deleted though an output had not taken them, by the output's name.
  var skipped: [String: Int] = [:]
  /// How long groups took, from their begin to their commit.
  private(set) var buckets = [Int](repeating: 0, count: edges.count + 1)
  private(set) var seconds = 0.0

  mutating func add(packets count: Int, lasted: Duration) {
    groups += 1
    packets += count
    let (whole, rest) = lasted.components
    let time = Double(whole) + Double(rest) / 1e18
    seconds += time
    buckets[Self.edges.firstIndex { time <= $0 } ?? Self.edges.count] += 1
  }
}
