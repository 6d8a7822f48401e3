import Glibc
import PrismBase
import PrismSQL

// Changes of records and of blocks, on a connection of their own, so that no writer waits for packets.
extension PostgreSQLPacketStore {
  private static let deviceTables = [
    "records", "deleted_records", "record_tables", "record_answers", "streams", "facts",
  ]

  var unixMilliseconds: Int64 { options.time.unixMilliseconds }

  /// Two packets that lose against changes may wait for each other: one of them is tried again.
  func changing<Value: Sendable, Refusal: Error>(
    _ fault: String, _ end: String, refusing body: @Sendable (StoreTables) throws -> Result<Value, Refusal>
  ) async throws(StoreFailure) -> Result<Value, Refusal> { try await writing.change(body) }

  func scrub(_ days: Set<Int64>) async throws(StoreFailure) {
    try await readers.reports.vacuum(
      days.flatMap { day in
        let name = RFC3339.text(unixMilliseconds: day * 86_400_000).prefix(10).filter { $0 != "-" }
        return ["blocks_\(name)", "payloads_\(name)"]
      } + Self.deviceTables + FleetErasure.tables)
  }
}

extension StoreReader {
  /// For open transactions, ten a second.
  private static let looksMax = 600

  /// Rewrites tables of PostgreSQL without what was deleted. One that is missing was dropped.
  fileprivate func vacuum(_ tables: [String]) async throws(StoreFailure) {
    try await apart { driver in
      _ = try driver.horizon()  // opens the connection
      // A snapshot that is older, of autovacuum too, would keep what was deleted in the tables. So would a new one, while a
      // transaction that began to write before runs in any database of the server.
      let next = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint & 4294967295"
      let mark = try SQLStatements(driver: driver).integer(next) ?? 0
      let older = """
        SELECT 1 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND (age(backend_xid) > age('\(mark)'::xid)
          OR datname = current_database() AND age(backend_xmin) > age('\(mark)'::xid))
        """
      var looks = 0
      while try !driver.rows(older, []).isEmpty {
        looks += 1
        guard looks < Self.looksMax else {
          throw PostgreSQLError(kind: .lost, message: "an open transaction keeps what was deleted; erase again")
        }
        usleep(100_000)
      }
      for table in tables where try driver.rows("SELECT 1 WHERE to_regclass($1) IS NOT NULL", [table]).count == 1 {
        let file = "SELECT pg_relation_filenode($1)::bigint"
        let before = try SQLStatements(driver: driver).integer(file, [table])
        _ = try driver.rows("VACUUM (FULL) \(table)", [])
        // A role that does not own the table gets a warning only.
        guard try SQLStatements(driver: driver).integer(file, [table]) != before else {
          throw PostgreSQLError(
            kind: .lost,
            message: "\(table) keeps the bytes of what was erased: let its owner run VACUUM (FULL) \(table)")
        }
      }
    }
  }
}

extension PostgreSQLSetup: SQLSource {
  /// Of reading all records of a table.
  private static let longDeadline: Duration = .seconds(600)

  var replacements: Int { 0 }

  func driver(isLong: Bool) -> any SQLDriver {
    var setup = self
    if isLong { setup.deadline = Self.longDeadline }
    return PostgreSQLDriver(setup)
  }

  func isTransient(_ error: any Error) -> Bool {
    (error as? PostgreSQLError).map { $0.isTransient && !$0.endsConnection } ?? false
  }

  func failure(_ error: any Error, since replacements: Int) async -> StoreFailure {
    (error as? PostgreSQLError).map { Refusal.failed($0).storeFailure } ?? (error as? Refusal)?.storeFailure
      ?? .unavailable("\(error)")
  }
}

extension PostgreSQLSetup.Refusal {
  var storeFailure: StoreFailure {
    if case .failed(let error) = self, error.isRejection { return .rejected(description) }
    return .unavailable(description)
  }
}
