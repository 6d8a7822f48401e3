/// The time that collectors served this database, in its table `facts`, and what follows from it. One replica at a time, within
/// the lock of the upkeep.
struct ServiceFacts {
  /// A database whose clock differs by more drops nothing.
  static let differenceMax: Int64 = 60

  private let connection: PostgreSQLConnection
  private let deadline: Deadline
  private var values: [String: Int64] = [:]
  /// Seconds since 1970 by the database's clock.
  let databaseSeconds: Int64

  init(_ connection: PostgreSQLConnection, by deadline: Deadline) throws(PostgreSQLError) {
    (self.connection, self.deadline) = (connection, deadline)
    let now = try connection.query("SELECT extract(epoch FROM clock_timestamp())::bigint", by: deadline)
    databaseSeconds = now.int(0, 0)
    let found = try connection.query("SELECT name, value FROM facts", by: deadline)
    for row in 0..<found.count { values[found.text(row, 0)] = found.int(row, 1) }
  }

  var servedSeconds: Int64 { values["served_seconds"] ?? 0 }

  /// Adds the time since the last note of any replica. It is no more than this replica measured itself, so a step of the
  /// database's clock does not count. It is no more than that clock says, so two replicas do not count a minute twice.
  mutating func note(ownSeconds: Int64) throws(PostgreSQLError) {
    let passed = databaseSeconds - (values["served_at"] ?? databaseSeconds)
    try set([
      ("served_seconds", servedSeconds + max(0, min(ownSeconds, passed))), ("served_at", databaseSeconds),
    ])
  }

  /// The last of the days that may be dropped, as `YYYYMMDD`.
  mutating func due(_ table: String, of days: [Int64], keptDays: Int) throws(PostgreSQLError) -> Int64 {
    let before = DayAllowance(table) { values[$0] }
    var allowance = before
    allowance.advance(over: days, keptDays: Int64(keptDays), served: servedSeconds)
    if allowance != before { try set(allowance.facts(table)) }
    return allowance.due
  }

  private mutating func set(_ facts: [(name: String, value: Int64)]) throws(PostgreSQLError) {
    for fact in facts { values[fact.name] = fact.value }
    _ = try connection.query(
      """
      INSERT INTO facts SELECT * FROM unnest($1::text[], $2::bigint[])
      ON CONFLICT (name) DO UPDATE SET value = excluded.value
      """,
      [PostgreSQLArray.text(facts.map(\.name)), PostgreSQLArray.text(facts.map { String($0.value) })], by: deadline)
  }
}
