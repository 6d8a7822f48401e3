import PrismProtocol

/// A filter in PostgreSQL's SQL, without its ids: conditions on `reports r` and its stream `s`, and the values of `$1` and on.
struct PostgreSQLConditions: Equatable {
  private(set) var sql: [String] = []
  private(set) var values: [String?] = []

  init(_ filter: ReportFilter) {
    add(filter.device) { "s.device = \($0)" }
    add(filter.namespace) { "s.namespace = \($0)" }
    add(filter.kind.map { RowKind(named: $0)?.tablePrefix ?? "" }) { "s.kind = \($0)::\"char\"" }
    // As the index of a day that is over has it.
    add(filter.type) { "left(r.type, 100) = left(\($0), 100) AND r.type = \($0)" }
    add(filter.since.map { String($0) }) { "r.received >= to_timestamp(\($0)::bigint / 1000.0)" }
    add(filter.until.map { String($0) }) { "r.received < to_timestamp(\($0)::bigint / 1000.0)" }
    for meta in filter.metas { add(meta) }
  }

  private mutating func add(_ value: String?, _ condition: (String) -> String) {
    guard let value else { return }
    sql.append(condition(parameter(value)))
  }

  private mutating func parameter(_ value: String) -> String {
    values.append(value)
    return "$\(values.count)"
  }

  // MARK: Metas

  /// A meta is parsed only if it has the key somewhere, and once for each condition. `OFFSET 0` keeps the planner from
  /// writing the field's expression out at each of its places.
  private mutating func add(_ meta: MetaCondition) {
    let field = "prism_json(r.meta)" + meta.path.map { " -> \(parameter($0))::text" }.joined()
    let value = meta.comparison == .exists ? "" : "\(parameter(meta.value))::text"
    sql.append(
      """
      strpos(r.meta, \(parameter(meta.quotedKey))) > 0
        AND (SELECT \(Self.test(meta, value)) FROM (SELECT \(field) AS x OFFSET 0) field)
      """)
  }

  /// - Parameter value: of the condition, as SQL.
  private static func test(_ meta: MetaCondition, _ value: String) -> String {
    switch meta.comparison {
    case .exists: return "x IS NOT NULL"
    case .contains: return "jsonb_typeof(x) = 'string' AND strpos(x #>> '{}', \(value)) > 0"
    case .equal: return equality(meta, value)
    case .notEqual: return "x IS NOT NULL AND NOT \(equality(meta, value))"
    case .less, .atMost, .more, .atLeast:
      let sign = meta.comparison.rawValue
      return meta.number == nil
        ? "CASE WHEN jsonb_typeof(x) = 'string' THEN (x #>> '{}') COLLATE \"C\" \(sign) \(value) ELSE false END"
        : "CASE WHEN jsonb_typeof(x) = 'number' THEN x::numeric \(sign) \(value)::numeric ELSE false END"
    }
  }

  private static func equality(_ meta: MetaCondition, _ value: String) -> String {
    let number = meta.number == nil ? "false" : "x::numeric = \(value)::numeric"
    return """
      CASE jsonb_typeof(x) WHEN 'string' THEN x #>> '{}' = \(value) WHEN 'number' THEN \(number)
        WHEN 'boolean' THEN x #>> '{}' = \(value) WHEN 'null' THEN \(value) = 'null' ELSE false END
      """
  }
}
