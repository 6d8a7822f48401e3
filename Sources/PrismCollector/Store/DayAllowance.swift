import PrismSQL

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

/// The numbers that a store keeps of itself, in its table `facts`.
extension SQLStatements {
  func fact(_ name: String) throws -> Int64? { try integer("SELECT value FROM facts WHERE name = $1", [name]) }

  func set(_ fact: String, _ value: Int64) throws {
    try run(
      "INSERT INTO facts VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = excluded.value", [fact, value])
  }

  /// The last of the days that may be dropped.
  /// - Parameters:
  ///   - days: those that are over by the clock, ascending.
  ///   - keptBefore: as of `DayAllowance`.
  ///   - served: seconds of service.
  func due(
    _ name: String, of days: [Int64], keptDays: Int64, keptBefore: Int64 = 0, served: Int64
  ) throws -> Int64 {
    let before = try DayAllowance(name, keptBefore: keptBefore, fact)
    var allowance = before
    allowance.advance(over: days, keptDays: keptDays, served: served)
    if allowance != before { for fact in allowance.facts(name) { try set(fact.name, fact.value) } }
    return allowance.due
  }
}
