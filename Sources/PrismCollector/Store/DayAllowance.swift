/// Which days of data may be dropped: at most one a day of the collector's service, by any clock. An operator who lowers the days
/// of retention allows as many more (docs/collector.md, "Retention").
///
/// Days have rising numbers. A day that may be dropped stays so while an output holds it. Kept in the store, so that a
/// restart gives nothing.
struct DayAllowance: Equatable {
  private static let daySeconds: Int64 = 86_400
  /// A drop that was late does not make the next ones later.
  private static let latenessSeconds: Int64 = 3600

  /// The last day that may be dropped; -1: there is no such day.
  private(set) var due: Int64 = -1
  /// In seconds of service: from then on one more may be dropped.
  private(set) var next: Int64 = 0
  /// Days that may be dropped before that.
  private(set) var extra: Int64 = 0
  /// The days of retention that were in force; 0: all were kept.
  private(set) var kept: Int64 = 0

  /// - Parameters:
  ///   - keptBefore: the days of retention that were in force before its first use; 0: all were kept.
  ///   - fact: its value in the store; nil: it is not there.
  init<Failure>(
    _ name: String, keptBefore: Int64 = 0, _ fact: (String) throws(Failure) -> Int64?
  ) throws(Failure) {
    due = try fact(name + "_due") ?? due
    next = try fact(name + "_next") ?? next
    extra = try fact(name + "_extra") ?? extra
    kept = try fact(name + "_kept") ?? keptBefore
  }

  func facts(_ name: String) -> [(name: String, value: Int64)] {
    [(name + "_due", due), (name + "_next", next), (name + "_extra", extra), (name + "_kept", kept)]
  }

  /// - Parameters:
  ///   - days: days with data that are over their time by the clock, ascending.
  ///   - keptDays: the days of retention.
  ///   - served: seconds of service.
  mutating func advance(over days: [Int64], keptDays: Int64, served: Int64) {
    if keptDays < kept { extra = max(extra, kept - keptDays) }
    kept = keptDays
    for day in days where day > due {
      if served >= next {
        next = max(next, served - Self.latenessSeconds) + Self.daySeconds
      } else if extra > 0 {
        extra -= 1
      } else {
        return
      }
      due = day
    }
  }
}
