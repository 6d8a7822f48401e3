import PrismSQLite

/// Reads for one output from the store on SQLite. One process feeds all outputs; ids rise in the order of commits.
struct SQLiteOutputSource: OutputSource {
  /// Made in any database that lacks it. A report that is deleted leaves its dead letter behind, until it is handed on.
  static let schema = """
    CREATE TABLE output_dead (output TEXT, report INTEGER, cause TEXT NOT NULL, time INTEGER NOT NULL,
      is_requeued INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (output, report)) WITHOUT ROWID;
    """

  private enum Column: String, SQLiteColumn {
    case report, cause, time
    case isRequeued = "is_requeued"
  }

  let store: SQLitePacketStore
  let name: String

  func lead() async throws(StoreFailure) -> Bool { true }
  func close() async {}

  func cursor() async throws(StoreFailure) -> Int64 {
    try await ask { database throws(SQLiteError) in try database.fact("output_\(name)") ?? 0 }
  }

  func next(after id: Int64, limit: Int) async throws(StoreFailure) -> [StoredReport] {
    var filter = ReportFilter()
    (filter.after, filter.limit, filter.hasPayloads) = (id, limit, true)
    return try await store.page(filter)
  }

  func note(cursor id: Int64, refused: [RefusedReport]) async throws(StoreFailure) {
    let now = await store.unixMilliseconds
    try await ask { database throws(SQLiteError) in
      let insert = try database.connection.prepare(
        "REPLACE INTO output_dead (output, report, cause, time) VALUES (:output, :report, :cause, :time)")
      for report in refused {
        insert.bind(":output", name)
        insert.bind(":report", report.id)
        insert.bind(":cause", report.cause)
        insert.bind(":time", now)
        try insert.run()
      }
      try database.set("output_\(name)", max(id, try database.fact("output_\(name)") ?? 0))
    }
  }

  func deadCount() async throws(StoreFailure) -> Int {
    try await ask { database throws(SQLiteError) in
      let count = try database.connection.prepare("SELECT count(*) FROM output_dead WHERE output = :output")
      count.bind(":output", name)
      return Int(try count.firstInt() ?? 0)
    }
  }

  func dead(after id: Int64, limit: Int, onlyRequeued: Bool) async throws(StoreFailure) -> [DeadReport] {
    try await ask { database throws(SQLiteError) in
      let select = try database.connection.prepare(
        """
        SELECT \(Column.list) FROM output_dead WHERE output = :output AND report > :id \(onlyRequeued ? "AND is_requeued" : "")
        ORDER BY report LIMIT \(limit)
        """)
      select.bind(":output", name)
      select.bind(":id", id)
      var found: [DeadReport] = []
      try select.forEachRow(of: Column.self) { row in
        found.append(
          DeadReport(
            id: row.int64(.report), cause: row.text(.cause), time: row.int64(.time), isRequeued: row.bool(.isRequeued)))
      }
      return found
    }
  }

  func change(dead ids: ClosedRange<Int64>, _ change: DeadChange) async throws(StoreFailure) -> Int {
    try await ask { database throws(SQLiteError) in
      let statement = try database.connection.prepare(
        """
        \(change == .drop ? "DELETE FROM output_dead" : "UPDATE output_dead SET is_requeued = 1")
        WHERE output = :output AND report BETWEEN :first AND :last
        """)
      statement.bind(":output", name)
      statement.bind(":first", ids.lowerBound)
      statement.bind(":last", ids.upperBound)
      try statement.run()
      return database.connection.changes
    }
  }

  private func ask<Result: Sendable>(
    _ body: @Sendable (PacketDatabase) throws(SQLiteError) -> Result
  ) async throws(StoreFailure) -> Result {
    try await store.askForOutput(body)
  }
}
