import PrismProtocol

/// Reads reports on one connection.
struct ReportPages {
  /// A page ends behind as many bytes of metas and payloads.
  private static let pageBytesMax = 4 * 1_048_576
  /// Of the first query of a page: without an index on the day that is written, a query reads all ids that it is given.
  private static let firstWindow: Int64 = 1 << 17

  /// The lowest id that an open transaction may still fill, the lowest that there is, and the day that is written.
  static let bounds =
    "SELECT prism_horizon(), (SELECT coalesce(min(first_report), 0) FROM days), \(WrittenDay.columns)"

  private static func select(_ payload: String, from reports: String) -> String {
    """
    SELECT r.id, s.device, s.namespace, s.kind::text, r.type, r.report_id, r.created_time,
      (extract(epoch FROM r.received) * 1000)::bigint, r.packet::text, r.chain_broken, r.meta, length(r.payload), \(payload)
    FROM \(reports) r JOIN streams s ON s.id = r.stream
    """
  }

  let connection: PostgreSQLConnection
  let deadline: Deadline

  func report(_ id: Int64) throws(PostgreSQLError) -> StoredReport? {
    let result = try connection.query(
      "\(Self.select("r.payload", from: "whole_reports")) WHERE r.id = $1", [String(id)], by: deadline)
    return result.count == 0 ? nil : Self.report(result, 0)
  }

  /// Reads windows of ids that grow, up to the lowest id that an open transaction may still fill.
  /// - Parameter day: of the reader, for all its pages.
  func page(_ filter: ReportFilter, _ day: inout WrittenDay) throws(PostgreSQLError) -> [StoredReport] {
    guard let ids = filter.ids else { return [] }
    let bounds = try connection.query(Self.bounds, by: deadline)
    let horizon = bounds.int(0, 0)
    try day.summarize(bounds, from: 2, connection, by: deadline)
    var (first, end) = (max(ids.lowerBound, bounds.int(0, 1)), min(ids.upperBound + 1, horizon))
    let isNewest = filter.isNewestFirst && end - first <= Self.firstWindow
    let since = isNewest ? day.since(first) : nil
    var (reports, bytes) = ([StoredReport](), 0)
    let metas = filter.metas.map { FieldQuestion($0) }
    var window = Self.firstWindow
    while first < end, reports.count < filter.limit, bytes < Self.pageBytesMax {
      let from = filter.isNewestFirst && end - first > window ? end - window : first
      let to = !filter.isNewestFirst && end - first > window ? first + window : end
      let limit = metas.isEmpty ? filter.limit - reports.count : nil
      let question = Self.question(filter, from: from, to: to, limit: limit, since: since)
      try connection.read(question.sql, question.values, rowsPerPart: filter.limit, by: deadline) {
        rows throws(PostgreSQLError) in
        for row in 0..<rows.count where bytes < Self.pageBytesMax && reports.count < filter.limit {
          let facts = ReportFacts(time: 0, stream: 0, type: 0, text: ReportText(own: rows.bytes(row, 10)))
          guard metas.allSatisfy({ $0.of(facts) }), let report = Self.report(rows, row) else { continue }
          reports.append(report)
          bytes += report.meta.count + (report.payload?.count ?? 0)
        }
        return bytes < Self.pageBytesMax && reports.count < filter.limit
      }
      if filter.isNewestFirst { end = from } else { first = to }
      window *= 4
    }
    return reports
  }

  /// The reports of the ids from `first` to before `end`, and what the question binds.
  /// - Parameters:
  ///   - limit: nil: all of them.
  ///   - since: the day from which on they were received; nil: not known. PostgreSQL plans for each day.
  static func question(
    _ filter: ReportFilter, from first: Int64, to end: Int64, limit: Int?, since: String? = nil
  ) -> (sql: String, values: [String?]) {
    let conditions = PostgreSQLConditions(filter)
    var wanted = ["r.id >= \(first)", "r.id < \(end)"] + conditions.sql
    if let since { wanted.append("r.received >= '\(since) 00:00:00+00'") }
    let order = "ORDER BY r.id \(filter.isNewestFirst ? "DESC" : "ASC")"
    // Their common ends are read of those that are chosen.
    let reports = """
      (SELECT r.* FROM reports r \(filter.namesStream ? "JOIN streams s ON s.id = r.stream" : "")
      WHERE \(wanted.joined(separator: " AND ")) \(limit.map { "\(order) LIMIT \($0)" } ?? ""))
      """
    let whole = PostgreSQLSchema.wholeReports(of: reports, contexts: since.map { "AND c.day >= '\($0)'" } ?? "")
    let payload = filter.hasPayloads ? "r.payload" : "NULL::bytea"
    return ("\(select(payload, from: "(\(whole))")) \(order)", conditions.values)
  }

  private static func report(_ row: PostgreSQLResult, _ index: Int) -> StoredReport? {
    guard let kind = RowKind.reports.first(where: { $0.tablePrefix == row.text(index, 3) }) else { return nil }
    return StoredReport(
      id: row.int(index, 0), device: row.text(index, 1), namespace: row.text(index, 2), kind: kind.name,
      type: row.text(index, 4), reportID: row.text(index, 5),
      createdTime: row.isNull(index, 6) ? nil : row.int(index, 6), receivedTime: row.int(index, 7),
      packetID: row.text(index, 8), chainIsBroken: row.bool(index, 9), meta: Array(row.bytes(index, 10)),
      payloadBytes: row.isNull(index, 11) ? nil : Int(row.int(index, 11)),
      payload: row.isNull(index, 12) ? nil : Array(row.bytes(index, 12)))
  }
}
