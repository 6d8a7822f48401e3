/// How long something took, in buckets that double from 1 ms; the last takes the rest.
public struct DurationHistogram: Sendable, Equatable {
  /// Upper ends, in milliseconds.
  public static let edges: [Int64] = (0..<17).map { 1 << $0 }

  /// Not cumulative; one more than there are edges.
  public private(set) var counts = [Int](repeating: 0, count: edges.count + 1)
  public private(set) var sum: Duration = .zero
  public var count: Int { counts.reduce(0, +) }

  public init() {}

  public mutating func record(_ duration: Duration) {
    let milliseconds = duration.wholeMilliseconds + (duration.isWholeMilliseconds ? 0 : 1)
    counts[Self.edges.firstIndex { milliseconds <= $0 } ?? Self.edges.count] += 1
    sum += duration
  }

  public mutating func add(_ other: DurationHistogram) {
    for index in counts.indices { counts[index] += other.counts[index] }
    sum += other.sum
  }
}

extension Duration {
  fileprivate var isWholeMilliseconds: Bool { components.attoseconds % 1_000_000_000_000_000 == 0 }
}
