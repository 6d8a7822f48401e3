import Foundation
import PrismBase
import PrismOutputs
import PrismProtocol
import PrismSQL
import PrismSQLite
import PrismTestSupport

@testable import PrismCollector

/// The reports of a collector's database as a table `report`, for questions in SQL.
enum ReportTable {
  /// Writes the table into a new file. - Parameter path: of `collector.db`.
  static func write(of path: String, to copy: String) async throws {
    let connection = try SQLiteConnection(.init(path: copy))
    try connection.execute(
      """
      CREATE TABLE report (id INTEGER PRIMARY KEY, device TEXT, namespace TEXT, kind TEXT, type TEXT, report_id TEXT,
        created_time INTEGER, received_time INTEGER, packet TEXT, chain_broken INTEGER, meta TEXT, payload BLOB)
      """)
    let insert = try connection.prepare(
      "INSERT INTO report VALUES (:i, :d, :n, :k, :t, :r, :c, :v, :p, :b, :m, :l)")
    try connection.execute("BEGIN")
    let reader = StoreReader(SQLiteSource(path: path))
    for report in try await Self.all(ReportFilter(scope: .everything), { try await reader.page($0) }) {
      insert.bind(":i", report.id)
      insert.bind(":d", report.device)
      insert.bind(":n", report.namespace)
      insert.bind(":k", report.kind)
      insert.bind(":t", report.type)
      insert.bind(":r", report.reportID)
      insert.bind(":c", report.createdTime)
      insert.bind(":v", report.receivedTime)
      insert.bind(":p", report.packetID)
      insert.bind(":b", report.chainIsBroken)
      insert.bind(":m", String(decoding: report.meta, as: UTF8.self))
      insert.bind(":l", report.payload)
      try insert.run()
    }
    try connection.execute("COMMIT")
  }

  /// All reports of a filter, page by page.
  static func all(
    _ wanted: ReportFilter, _ page: (ReportFilter) async throws -> [StoredReport]
  ) async throws -> [StoredReport] {
    var (filter, reports) = (wanted, [StoredReport]())
    (filter.limit, filter.hasPayloads) = (1000, true)
    while case let found = try await page(filter), let last = found.last {
      reports += found
      filter.after = last.id
    }
    return reports
  }

  /// Those of a database on PostgreSQL. - Parameter device: nil: of all.
  static func reports(of uri: String, device: String? = nil) async throws -> [StoredReport] {
    let reader = StoreReader(PostgreSQLSetup(target: try PostgreSQLTarget(uri: uri), deadline: .seconds(30)))
    var filter = ReportFilter(scope: .everything)
    filter.device = device
    return try await Self.all(filter) { try await reader.page($0) }
  }
}
