/// The hours that came of one book of a device.
struct HourChain: PlacedValue {
  private static let partsMax = 64

  /// Numbers without a gap, and the days on which the first and the last of these hours ended.
  struct Run {
    var first: (number: Int, day: Int64), last: (number: Int, day: Int64)
  }

  /// Ascending: the numbers between two of them were lost.
  private(set) var runs: [Run] = []
  /// The days of further parts of hours, by their number and part.
  private var parts: [Int: Int64] = [:]
  /// The days of hours whose chain of packets is broken.
  private var broken: Set<Int64> = []

  /// - Returns: false: this part of the hour came before.
  mutating func add(_ report: ReleaseReport) -> Bool {
    let day = report.endTime / ReleaseIndex.day
    if report.chainIsBroken { broken.insert(day) }
    guard report.part > 0 else { return add((report.number, day)) }
    guard report.part < Self.partsMax else { return false }
    return parts.updateValue(day, forKey: report.number * Self.partsMax + report.part) == nil
  }

  private mutating func add(_ hour: (number: Int, day: Int64)) -> Bool {
    let next = (runs.lastIndex { $0.first.number <= hour.number } ?? -1) + 1
    guard next == 0 || runs[next - 1].last.number < hour.number else { return false }
    let joinsNext = next < runs.count && runs[next].first.number == hour.number + 1
    if next > 0, runs[next - 1].last.number == hour.number - 1 {
      runs[next - 1].last = joinsNext ? runs.remove(at: next).last : hour
    } else if joinsNext {
      runs[next].first = hour
    } else {
      runs.insert(Run(first: hour, last: hour), at: next)
    }
    return true
  }

  func hasDays(before oldest: Int64) -> Bool {
    runs.contains { $0.last.day <= oldest } || broken.contains { $0 <= oldest }
      || parts.values.contains { $0 <= oldest }
  }

  mutating func forget(before oldest: Int64) {
    runs.removeAll { $0.last.day <= oldest }
    broken = broken.filter { $0 > oldest }
    parts = parts.filter { $0.value > oldest }
  }

  var weight: Int { runs.count + broken.count + parts.count }
  var count: Int { 1 }

  /// The hours that were lost in some days, or on the edge of them; nil: all came.
  func missing(_ days: ClosedRange<Int64>) -> Int? {
    let lost = zip(runs, runs.dropFirst()).reduce(0) { sum, pair in
      let gap = min(pair.0.last.day, pair.1.first.day)...max(pair.0.last.day, pair.1.first.day)
      return sum + (days.overlaps(gap) ? pair.1.first.number - pair.0.last.number - 1 : 0)
    }
    return lost > 0 || broken.contains(where: days.contains) ? lost : nil
  }
}
