import PrismProtocol

/// The part of a filter that PostgreSQL sees: conditions on `reports r` and its stream `s`, and the values of `$1` and on. Metas
/// are held to it report by report.
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
  }

  private mutating func add(_ value: String?, _ condition: (String) -> String) {
    guard let value else { return }
    values.append(value)
    sql.append(condition("$\(values.count)"))
  }
}
