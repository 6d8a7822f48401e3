/// A filter in SQLite's SQL, without its ids: conditions on `reports r`, its stream `s` and its type `t`, and what they
/// bind.
struct SQLiteConditions {
  private(set) var sql: [String] = []
  private(set) var values: [(parameter: StaticString, value: String)] = []

  init(_ filter: ReportFilter) {
    add(filter.device, ":device") { "s.device = \($0)" }
    add(filter.namespace, ":namespace") { "s.namespace = \($0)" }
    add(filter.kind, ":kind") { "s.kind = \($0)" }
    add(filter.type, ":type") { "t.type = \($0)" }
    if let since = filter.since { sql.append("r.received_time >= \(since)") }
    if let until = filter.until { sql.append("r.received_time < \(until)") }
    for (meta, names) in zip(filter.metas, Self.metaNames) { add(meta, names) }
  }

  private mutating func add(_ value: String?, _ parameter: StaticString, _ condition: (StaticString) -> String) {
    guard let value else { return }
    sql.append(condition(parameter))
    values.append((parameter, value))
  }

  // MARK: Metas

  private typealias MetaNames = (key: StaticString, path: StaticString, value: StaticString)

  private static let metaNames: [MetaNames] = [
    (":key0", ":path0", ":value0"), (":key1", ":path1", ":value1"), (":key2", ":path2", ":value2"),
    (":key3", ":path3", ":value3"), (":key4", ":path4", ":value4"), (":key5", ":path5", ":value5"),
    (":key6", ":path6", ":value6"), (":key7", ":path7", ":value7"),
  ]

  /// A meta is parsed only if it has the key somewhere, and not at all if it is damaged.
  private mutating func add(_ meta: MetaCondition, _ names: MetaNames) {
    sql.append(
      "CASE WHEN instr(r.meta, \(names.key)) = 0 OR NOT json_valid(r.meta) THEN 0 ELSE \(Self.test(meta, names)) END")
    values.append((names.key, meta.quotedKey))
    values.append((names.path, "$" + meta.path.map { ".\"\($0)\"" }.joined()))
    if meta.comparison != .exists { values.append((names.value, meta.value)) }
  }

  private static func test(_ meta: MetaCondition, _ names: MetaNames) -> String {
    let type = "json_type(r.meta, \(names.path))"
    let field = "json_extract(r.meta, \(names.path))"
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
