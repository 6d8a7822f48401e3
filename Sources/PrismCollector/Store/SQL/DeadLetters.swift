import PrismOutputs
import PrismSQL
import PrismSQLite

/// The dead letters of one output, within a transaction. A report that is deleted leaves its dead letter behind, until that is
/// handed on.
struct DeadLetters {
  private enum Column: String, SQLiteColumn { case output, report, cause, time, isRequeued, isDelivered }

  let statements: SQLStatements
  let output: String

  /// - Parameter time: milliseconds since 1970.
  func add(_ refused: [RefusedReport], time: Int64) throws {
    try statements.insert(
      Column.self, into: "output_dead", rows: refused.map { [output, $0.id, $0.cause, time, 0, $0.isDelivered] },
      onConflict: Column.replacing(.output, .report))
  }

  func count() throws -> DeadCount {
    func count(_ condition: String) throws -> Int {
      Int(try statements.integer("SELECT count(*) FROM output_dead WHERE output = $1 \(condition)", [output]) ?? 0)
    }
    return DeadCount(letters: try count(""), refused: try count("AND is_delivered = 0"))
  }

  func list(after id: Int64, limit: Int, onlyRequeued: Bool) throws -> [DeadReport] {
    try statements.rows(
      of: Column.self,
      """
      FROM output_dead WHERE output = $1 AND report > $2 \(onlyRequeued ? "AND is_requeued = 1" : "") ORDER BY report LIMIT $3
      """, [output, id, limit]
    ).map { row in
      DeadReport(
        id: row.int64(.report), cause: row.text(.cause), time: row.int64(.time), isRequeued: row.int(.isRequeued) == 1,
        isDelivered: row.int(.isDelivered) == 1)
    }
  }

  func change(_ ids: ClosedRange<Int64>, _ change: DeadChange) throws -> Int {
    try statements.run(
      """
      \(change == .drop ? "DELETE FROM output_dead" : "UPDATE output_dead SET is_requeued = 1")
      WHERE output = $1 AND report BETWEEN $2 AND $3 RETURNING 1
      """, [output, ids.lowerBound, ids.upperBound])
  }
}

/// The part of the sources on SQLite and on PostgreSQL that is the same.
protocol LetterSource: OutputSource {
  var name: String { get }
  /// Runs a transaction about the state of the output.
  func asking<Result: Sendable>(
    _ body: @Sendable (SQLStatements) throws -> Result
  ) async throws(StoreFailure) -> Result
}

extension LetterSource {
  private func letters<Result: Sendable>(
    _ body: @Sendable (DeadLetters) throws -> Result
  ) async throws(StoreFailure) -> Result {
    let name = name
    return try await asking { try body(DeadLetters(statements: $0, output: name)) }
  }

  func deadCount() async throws(StoreFailure) -> DeadCount { try await letters { try $0.count() } }

  func dead(after id: Int64, limit: Int, onlyRequeued: Bool) async throws(StoreFailure) -> [DeadReport] {
    try await letters { try $0.list(after: id, limit: limit, onlyRequeued: onlyRequeued) }
  }

  func change(dead ids: ClosedRange<Int64>, _ change: DeadChange) async throws(StoreFailure) -> Int {
    try await letters { try $0.change(ids, change) }
  }
}
