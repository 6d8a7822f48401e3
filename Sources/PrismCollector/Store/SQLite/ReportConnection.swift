import PrismSQLite

/// A connection that reads reports with their names and contexts, for the one queue that owns it.
final class ReportConnection {
  let connection: SQLiteConnection
  let names: NameReader
  let contexts: ContextReader

  /// - Parameter settings: as SQL.
  init(path: String, vfs: String?, settings: String) throws(SQLiteError) {
    connection = try SQLiteConnection(.init(path: path, isReadOnly: true, vfs: vfs))
    try connection.execute(settings)
    (names, contexts) = (try NameReader(connection), try ContextReader(connection))
  }

  /// The part of a filter that SQLite sees: ids, ascending or not, and times. Names and metas are held to it report by report.
  static func conditions(_ filter: ReportFilter, _ ids: ClosedRange<Int64>) -> String {
    var sql = "r.id BETWEEN \(ids.lowerBound) AND \(ids.upperBound)"
    if let since = filter.since { sql += " AND r.received_time >= \(since)" }
    if let until = filter.until { sql += " AND r.received_time < \(until)" }
    return sql
  }

  /// Hands over what a question sees of a report. - Parameter readsMetas: the row has its meta and its context.
  func withFacts<Column: SQLiteColumn>(
    _ row: SQLiteRow<Column>, _ columns: FactColumns<Column>, _ body: (ReportFacts) -> Void
  ) throws(SQLiteError) {
    var facts = ReportFacts(
      time: row.int64(columns.time), stream: row.int64(columns.stream), type: row.int64(columns.type))
    guard let meta = columns.meta, let context = columns.context else { return body(facts) }
    facts.context = row.integer(context)
    let own = row.blob(meta)
    guard let common = try facts.context.flatMap({ (id) throws(SQLiteError) in try contexts.common(id) }) else {
      facts.text = ReportText(own: own)
      return body(facts)
    }
    common.withUnsafeBytes {
      facts.text = ReportText(own: own, common: $0)
      body(facts)
    }
  }
}

/// Where the facts of a report are in a row.
struct FactColumns<Column: SQLiteColumn> {
  var time: Column, stream: Column, type: Column
  /// nil: the row does not have them.
  var meta: Column?, context: Column?
}
