import PrismProtocol

/// Decides how many ids a scan reads at once, by how long the last ones took: a part that takes long would end long after
/// the time is up.
struct ScanPace: Sendable, Equatable {
  /// Ids of the first part. A later part has at most eight times as many as the one before.
  static let firstCount: Int64 = 1 << 15
  private static let growth: Int64 = 8
  /// The smallest part that is made of a window, and the shortest time that one is made for.
  static let countMin: Int64 = 1 << 10
  private static let shortest: Duration = .milliseconds(50)

  private var count = Self.firstCount
  /// Of the last part; nil: it took no time.
  private var idsPerSecond: Double?

  /// The next part of a window, and the rest of it.
  /// - Parameter left: the time in which the scan ends.
  func part(
    of ids: ClosedRange<Int64>, within left: Duration, oldestFirst: Bool
  ) -> (ids: ClosedRange<Int64>, rest: ClosedRange<Int64>?) {
    var most = count
    if let idsPerSecond {
      // Half of it: ids may have more reports than those before.
      let inTime = idsPerSecond * (max(left, Self.shortest) / .seconds(2))
      most = max(Self.countMin, min(most, Int64(min(inTime, 1e15))))
    }
    guard ids.upperBound - ids.lowerBound >= most else { return (ids, nil) }
    if oldestFirst {
      let end = ids.lowerBound + most - 1
      return (ids.lowerBound...end, end + 1...ids.upperBound)
    }
    let begin = ids.upperBound - most + 1
    return (begin...ids.upperBound, ids.lowerBound...begin - 1)
  }

  mutating func note(_ ids: ClosedRange<Int64>, lasted: Duration) {
    let read = ids.upperBound - ids.lowerBound + 1
    count = min(max(count, read * Self.growth), 1 << 40)
    idsPerSecond = lasted > .zero ? Double(read) / (lasted / .seconds(1)) : nil
  }
}
