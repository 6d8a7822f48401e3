/// Transactions, one after the other, over a connection of its own, which the first one opens. For one queue.
final class SQLSession {
  private let open: () throws -> any SQLDriver
  /// nil: it is opened when it is used.
  private(set) var driver: (any SQLDriver)?

  init(_ open: @escaping () throws -> any SQLDriver) { self.open = open }

  func close() { driver = nil }

  /// - Parameters:
  ///   - isFinal: the body asks for what is final.
  ///   - commits: false for a result: nothing of the transaction happens. Nor does it after an error.
  func perform<Result>(
    isWriting: Bool, isFinal: Bool = false, commits: (Result) -> Bool = { _ in true },
    _ body: (SQLStatements) throws -> Result
  ) throws -> Result {
    let driver = try driver ?? open()
    self.driver = driver
    let horizon = isFinal ? try driver.horizon() : .max
    defer { driver.rollBack() }
    try driver.begin(isWriting: isWriting)
    let result = try body(SQLStatements(driver: driver, horizon: horizon))
    if commits(result) { try driver.commit() }
    return result
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
