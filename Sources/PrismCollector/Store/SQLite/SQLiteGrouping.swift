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
        SELECT \(bucket) AS time, \(word) AS word, \(Self.number(of: path).sql(hasContexts: true)) AS number
        \(source) WHERE \(wanted)
      ) q \(names) WHERE q.number IS NOT NULL LIMIT \(limit)
      """)
    bind(statement)
    for value in Self.number(of: path).values(hasContexts: true) { statement.bind(value.parameter, value.value) }
    return statement
  }

  /// The questions of the statements about contexts.
  /// - Parameter numbers: the path of `numbers`.
  func questions(of numbers: [String]? = nil) -> [ContextQuestion] {
    var questions = conditions.questions
    if case .meta(let path) = grouping.key { questions.append(Self.group(by: path).question) }
    if let numbers { questions.append(Self.number(of: numbers).question) }
    return questions
  }

  private static let groupNames = SQLiteField.Names(
    number: MetaCondition.countMax, key: ":groupKey", path: ":groupPath", first: ":groupFirst",
    firstPath: ":groupFirstPath")
  private static let numberNames = SQLiteField.Names(
    number: MetaCondition.countMax + 1, key: ":numberKey", path: ":numberPath", first: ":numberFirst",
    firstPath: ":numberFirstPath")

  private static func group(by path: [String]) -> SQLiteField {
    SQLiteField(path, groupNames, otherwise: "NULL") { "CAST(json_extract(\($0), :groupPath) AS TEXT)" }
  }

  private static func number(of path: [String]) -> SQLiteField {
    SQLiteField(path, numberNames, otherwise: "NULL") { meta in
      """
      CASE WHEN json_type(\(meta), :numberPath) IN ('integer', 'real') THEN json_extract(\(meta), :numberPath) END
      """
    }
  }

  private func bind(_ statement: SQLiteStatement) {
    for value in conditions.values { statement.bind(value.parameter, value.value) }
    guard case .meta(let path) = grouping.key else { return }
    for value in Self.group(by: path).values(hasContexts: true) { statement.bind(value.parameter, value.value) }
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
    case .meta(let path): Self.group(by: path).sql(hasContexts: true)
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
}
