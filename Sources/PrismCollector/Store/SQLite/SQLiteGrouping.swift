import PrismSQLite

/// A question of the page in SQLite's SQL. Rows are grouped by the numbers of types and streams; the names come last, so that
/// a count reads no other table for a report.
struct SQLiteGrouping {
  private let filter: ReportFilter
  private let grouping: ReportGrouping
  private let conditions: SQLiteConditions

  init(_ filter: ReportFilter, _ grouping: ReportGrouping) {
    (self.filter, self.grouping, conditions) = (filter, grouping, SQLiteConditions(filter))
  }

  /// Whether the word of a report is a number: that of its type or its stream, or 0.
  var isByNumber: Bool { if case .meta = grouping.key { false } else { true } }

  /// The bucket and the word of each report.
  func words(_ connection: SQLiteConnection) throws(SQLiteError) -> SQLiteStatement {
    let statement = try connection.prepare(wordsText)
    bind(statement)
    return statement
  }

  /// As SQL.
  var wordsText: String { "SELECT \(bucket), \(word) \(source) WHERE \(wanted)" }

  /// Finds the name of the word `:word`; nil: it has no name.
  func name(_ connection: SQLiteConnection) throws(SQLiteError) -> SQLiteStatement? {
    guard !names.isEmpty else { return nil }
    return try connection.prepare("SELECT \(name) FROM (SELECT :word AS word) q \(names)")
  }

  /// By a field of the meta.
  func counts(_ connection: SQLiteConnection) throws(SQLiteError) -> SQLiteStatement {
    let statement = try connection.prepare(
      """
      SELECT q.time * \(grouping.bucketMilliseconds), \(name), sum(q.number) FROM (
        SELECT \(bucket) AS time, \(word) AS word, count(*) AS number \(source) WHERE \(wanted) GROUP BY 1, 2
      ) q \(names) GROUP BY 1, 2 ORDER BY 1
      """)
    bind(statement)
    return statement
  }

  func numbers(
    of path: [String], limit: Int, _ connection: SQLiteConnection
  ) throws(SQLiteError) -> SQLiteStatement {
    let statement = try connection.prepare(
      """
      SELECT q.time * \(grouping.bucketMilliseconds), \(name), q.number FROM (
        SELECT \(bucket) AS time, \(word) AS word,
          CASE WHEN instr(r.meta, :numberKey) = 0 OR NOT json_valid(r.meta) THEN NULL
            WHEN json_type(r.meta, :numberPath) IN ('integer', 'real') THEN json_extract(r.meta, :numberPath) END AS number
        \(source) WHERE \(wanted)
      ) q \(names) WHERE q.number IS NOT NULL LIMIT \(limit)
      """)
    bind(statement)
    statement.bind(":numberKey", Self.key(path))
    statement.bind(":numberPath", Self.path(path))
    return statement
  }

  private func bind(_ statement: SQLiteStatement) {
    for value in conditions.values { statement.bind(value.parameter, value.value) }
    guard case .meta(let path) = grouping.key else { return }
    statement.bind(":groupKey", Self.key(path))
    statement.bind(":groupPath", Self.path(path))
  }

  private var bucket: String { "r.received_time / \(grouping.bucketMilliseconds)" }

  private var wanted: String {
    let ids = filter.ids ?? 0...0
    return (["r.id BETWEEN \(ids.lowerBound) AND \(ids.upperBound)"] + conditions.sql).joined(separator: " AND ")
  }

  /// Streams and types only where the filter asks for them.
  private var source: String {
    var source = "FROM reports r"
    if filter.device ?? filter.namespace ?? filter.kind != nil { source += " JOIN streams s ON s.id = r.stream" }
    if filter.type != nil { source += " JOIN types t ON t.id = r.type" }
    return source
  }

  private var word: String {
    switch grouping.key {
    case .nothing: "NULL"
    case .type, .namespace: "r.type"
    case .device, .kind: "r.stream"
    case .meta:
      """
      CASE WHEN instr(r.meta, :groupKey) > 0 AND json_valid(r.meta)
        THEN CAST(json_extract(r.meta, :groupPath) AS TEXT) END
      """
    }
  }

  private var name: String {
    switch grouping.key {
    case .nothing: "''"
    case .type: "n.type"
    case .namespace: "n.namespace"
    case .device: "n.device"
    case .kind: "n.kind"
    case .meta: "coalesce(substr(q.word, 1, 200), '')"
    }
  }

  private var names: String {
    switch grouping.key {
    case .nothing, .meta: ""
    case .type, .namespace: "JOIN types n ON n.id = q.word"
    case .device, .kind: "JOIN streams n ON n.id = q.word"
    }
  }

  private static func key(_ path: [String]) -> String { "\"\(path.last ?? "")\"" }
  private static func path(_ path: [String]) -> String { "$" + path.map { ".\"\($0)\"" }.joined() }
}
