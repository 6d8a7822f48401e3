/// The figures of a set of numbers.
struct NumberSummary: Sendable, Equatable {
  let count: Int
  let sum: Double
  let minimum: Double, maximum: Double
  let median: Double, percentile95: Double

  var average: Double { sum / Double(count) }

  /// - Parameter values: at least one.
  init(_ values: [Double]) {
    let sorted = values.sorted()
    (count, sum) = (sorted.count, sorted.reduce(0, +))
    (minimum, maximum) = (sorted[0], sorted[sorted.count - 1])
    (median, percentile95) = (Self.rank(sorted, 50), Self.rank(sorted, 95))
  }

  /// The nearest rank: the smallest number that this share of all does not exceed.
  private static func rank(_ sorted: [Double], _ percent: Int) -> Double {
    sorted[max(0, (sorted.count * percent + 99) / 100 - 1)]
  }
}
