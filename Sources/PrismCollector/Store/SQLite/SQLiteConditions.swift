/// A filter in SQLite's SQL, without its ids: conditions on `reports r`, and what they bind. The function `prism_named` tells
/// whether a report has the names of the filter.
struct SQLiteConditions {
  private(set) var sql: [String] = []
  private(set) var values: [(parameter: StaticString, value: String)] = []
  /// The questions of `sql` about contexts.
  private(set) var questions: [ContextQuestion] = []

  init(_ filter: ReportFilter) {
    if filter.device ?? filter.namespace ?? filter.kind ?? filter.type != nil {
      sql.append("prism_named(r.stream, r.type)")
    }
    if let since = filter.since { sql.append("r.received_time >= \(since)") }
    if let until = filter.until { sql.append("r.received_time < \(until)") }
    for (meta, names) in zip(filter.metas, Self.metaNames) { add(meta, names) }
  }

  // MARK: Metas

  private typealias MetaNames = (field: SQLiteField.Names, value: StaticString)

  private static let metaNames: [MetaNames] = [
    (.init(number: 0, key: ":key0", path: ":path0", first: ":first0", firstPath: ":firstPath0"), ":value0"),
    (.init(number: 1, key: ":key1", path: ":path1", first: ":first1", firstPath: ":firstPath1"), ":value1"),
    (.init(number: 2, key: ":key2", path: ":path2", first: ":first2", firstPath: ":firstPath2"), ":value2"),
    (.init(number: 3, key: ":key3", path: ":path3", first: ":first3", firstPath: ":firstPath3"), ":value3"),
    (.init(number: 4, key: ":key4", path: ":path4", first: ":first4", firstPath: ":firstPath4"), ":value4"),
    (.init(number: 5, key: ":key5", path: ":path5", first: ":first5", firstPath: ":firstPath5"), ":value5"),
    (.init(number: 6, key: ":key6", path: ":path6", first: ":first6", firstPath: ":firstPath6"), ":value6"),
    (.init(number: 7, key: ":key7", path: ":path7", first: ":first7", firstPath: ":firstPath7"), ":value7"),
  ]

  private mutating func add(_ meta: MetaCondition, _ names: MetaNames) {
    let field = SQLiteField(meta.path, names.field, otherwise: "0") { Self.test(meta, $0, names) }
    sql.append(field.sql)
    values += field.values
    var question = field.question
    if meta.comparison != .exists {
      values.append((names.value, meta.value))
      question.values.append((names.value, meta.value))
    }
    questions.append(question)
  }

  /// - Parameter text: the SQL of a meta.
  private static func test(_ meta: MetaCondition, _ text: String, _ names: MetaNames) -> String {
    let type = "json_type(\(text), \(names.field.path))"
    let field = "json_extract(\(text), \(names.field.path))"
    switch meta.comparison {
    case .exists: return "\(type) IS NOT NULL"
    case .contains: return "\(type) = 'text' AND instr(\(field), \(names.value)) > 0"
    case .equal: return equality(meta, type, field, names.value)
    case .notEqual: return "\(type) IS NOT NULL AND NOT \(equality(meta, type, field, names.value))"
    case .less, .atMost, .more, .atLeast:
      let (types, value) =
        meta.number == nil ? ("'text'", "\(names.value)") : ("'integer', 'real'", "CAST(\(names.value) AS NUMERIC)")
      return "CASE WHEN \(type) IN (\(types)) THEN \(field) \(meta.comparison.rawValue) \(value) ELSE 0 END"
    }
  }

  private static func equality(_ meta: MetaCondition, _ type: String, _ field: String, _ value: StaticString) -> String
  {
    let number = meta.number == nil ? "0" : "\(field) = CAST(\(value) AS NUMERIC)"
    return """
      CASE \(type) WHEN 'text' THEN \(field) = \(value) WHEN 'integer' THEN \(number) WHEN 'real' THEN \(number)
        WHEN 'true' THEN \(value) = 'true' WHEN 'false' THEN \(value) = 'false' WHEN 'null' THEN \(value) = 'null' ELSE 0 END
      """
  }
}
