/// How often a figure came in each bucket.
public struct Histogram: Sendable, Equatable {
  /// The buckets' upper ends, ascending; the last bucket has no upper end and takes the rest.
  public let edges: [Double]
  /// Not cumulative; one more than there are edges.
  public private(set) var counts: [Int]
  /// The sum of all values.
  public private(set) var sum: Double

  /// - Parameter counts: of each bucket; nil: nothing was counted yet.
  public init(edges: [Double], counts: [Int]? = nil, sum: Double = 0) {
    (self.edges, self.sum) = (edges, sum)
    self.counts = counts ?? [Int](repeating: 0, count: edges.count + 1)
  }

  /// Each edge is twice the one before.
  public init(from first: Double, doublings: Int) {
    self.init(edges: (0...doublings).map { first * Double(1 << $0) })
  }

  /// Counts `value` in its bucket.
  public mutating func record(_ value: Double) {
    counts[edges.firstIndex { value <= $0 } ?? edges.count] += 1
    sum += value
  }
}
