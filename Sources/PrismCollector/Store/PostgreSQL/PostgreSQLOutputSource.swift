import PrismBase

/// Reads for one output, on a connection and a queue of its own. The replica whose connection has the output's advisory
/// lock reads; the lock ends with the connection.
actor PostgreSQLOutputSource: OutputSource {
  private let executor = DispatchQueueExecutor(label: "prism.collector.output")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let setup: PostgreSQLSetup
  private let name: String
  private var connection: PostgreSQLConnection?
  private var isLeading = false
  private var day = WrittenDay()

  init(_ setup: PostgreSQLSetup, name: String) { (self.setup, self.name) = (setup, name) }

  func close() { connection = nil }

  func lead() throws(StoreFailure) -> Bool {
    if isLeading, connection != nil { return true }
    isLeading = try ask { (connection, by) throws(PostgreSQLError) in
      let locked = try connection.query(
        "SELECT pg_try_advisory_lock(\(PostgreSQLSchema.lockClass + 1), hashtext($1))", [name], by: by)
      guard locked.bool(0, 0) else { return false }
      _ = try connection.query(
        "INSERT INTO outputs VALUES ($1, 0, now()) ON CONFLICT (output) DO UPDATE SET seen = now()", [name], by: by)
      return true
    }
    return isLeading
  }

  func cursor() throws(StoreFailure) -> Int64 {
    try ask { (connection, by) throws(PostgreSQLError) in
      try connection.query("SELECT coalesce(max(cursor), 0) FROM outputs WHERE output = $1", [name], by: by).int(0, 0)
    }
  }

  func next(after id: Int64, limit: Int) throws(StoreFailure) -> [StoredReport] {
    var filter = ReportFilter()
    (filter.after, filter.limit, filter.hasPayloads) = (id, limit, true)
    let wanted = filter
    return try ask { (connection, by) throws(PostgreSQLError) in
      try ReportPages(connection: connection, deadline: by).page(wanted, &day)
    }
  }

  /// Only forward: who led before may still be writing.
  func note(cursor id: Int64) throws(StoreFailure) {
    try ask { (connection, by) throws(PostgreSQLError) in
      _ = try connection.query(
        "UPDATE outputs SET cursor = greatest(cursor, $2), seen = now() WHERE output = $1", [name, String(id)], by: by)
    }
  }

  private func ask<Result>(
    _ body: (PostgreSQLConnection, Deadline) throws(PostgreSQLError) -> Result
  ) throws(StoreFailure) -> Result {
    do throws(PostgreSQLSetup.Refusal) {
      if connection == nil { isLeading = false }
      let connection = if let connection { connection } else { try setup.connect() }
      self.connection = connection
      do throws(PostgreSQLError) { return try body(connection, Deadline(setup.deadline)) } catch {
        if error.endsConnection { self.connection = nil }
        throw .failed(error)
      }
    } catch { throw .unavailable(error.description) }
  }
}
