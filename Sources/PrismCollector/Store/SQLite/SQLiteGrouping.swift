import PrismProtocol
import PrismSQLite

/// A question of the page in SQLite's SQL. Rows are grouped by the numbers of types and streams; `NameReader` has their names,
/// so a count reads no other table for a report.
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
  var wordsText: String { "SELECT \(bucket), \(word) FROM reports r WHERE \(wanted)" }

  /// The name of a word that is a number; nil: it has no name.
  func name(of word: Int64, _ names: NameReader) throws(SQLiteError) -> String? {
    switch grouping.key {
    case .nothing, .meta: ""
    case .type: try names.type(word)?.type
    case .namespace: try names.type(word)?.namespace
    case .device: try names.stream(word)?.device
    case .kind: try names.stream(word)?.kind.name
    }
  }

  /// By a field of the meta.
  func counts(_ connection: SQLiteConnection) throws(SQLiteError) -> SQLiteStatement {
    let statement = try connection.prepare(
      """
      SELECT q.time * \(grouping.bucketMilliseconds), \(Self.text), sum(q.number) FROM (
        SELECT \(bucket) AS time, \(word) AS word, count(*) AS number FROM reports r WHERE \(wanted) GROUP BY 1, 2
      ) q GROUP BY 1, 2 ORDER BY 1
      """)
    bind(statement)
    return statement
  }

  /// The bucket, the word and the number of each report; the word is a text if it is not a number.
  func numbers(
    of path: [String], limit: Int, _ connection: SQLiteConnection
  ) throws(SQLiteError) -> SQLiteStatement {
    let statement = try connection.prepare(
      """
      SELECT q.time * \(grouping.bucketMilliseconds), \(isByNumber ? "q.word" : Self.text), q.number FROM (
        SELECT \(bucket) AS time, \(word) AS word, \(Self.number(of: path).sql) AS number
        FROM reports r WHERE \(wanted)
      ) q WHERE q.number IS NOT NULL LIMIT \(limit)
      """)
    bind(statement)
    for value in Self.number(of: path).values { statement.bind(value.parameter, value.value) }
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
    for value in Self.group(by: path).values { statement.bind(value.parameter, value.value) }
  }

  private var bucket: String { "r.received_time / \(grouping.bucketMilliseconds)" }

  private var wanted: String {
    let ids = filter.ids ?? 0...0
    return (["r.id BETWEEN \(ids.lowerBound) AND \(ids.upperBound)"] + conditions.sql).joined(separator: " AND ")
  }

  private var word: String {
    switch grouping.key {
    case .nothing: "NULL"
    case .type, .namespace: "r.type"
    case .device, .kind: "r.stream"
    case .meta(let path): Self.group(by: path).sql
    }
  }

  /// Of a word that is a field of the meta.
  private static let text = "coalesce(substr(q.word, 1, 200), '')"
}
