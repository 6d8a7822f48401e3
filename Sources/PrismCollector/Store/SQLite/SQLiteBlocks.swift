import PrismSQLite

/// Finds the blocks of reports that have what a filter names.
enum SQLiteBlocks {
  private enum Column: String, SQLiteColumn { case block = "b.block" }

  /// - Returns: descending; nil: any block may.
  static func numbers(
    _ filter: ReportFilter, _ connection: SQLiteConnection, from low: Int64, to high: Int64
  ) throws(SQLiteError) -> [Int64]? {
    var names: [(column: String, parameter: StaticString, value: String)] = []
    func add(_ column: String, _ parameter: StaticString, _ value: String?) {
      if let value { names.append((column, parameter, value)) }
    }
    add("namespace", ":namespace", filter.namespace)
    let source: String
    if filter.device != nil {
      add("device", ":device", filter.device)
      add("kind", ":kind", filter.kind)
      source = "stream_blocks b JOIN streams n ON n.id = b.stream"
    } else {
      add("type", ":type", filter.type)
      source = "type_blocks b JOIN types n ON n.id = b.type"
    }
    if names.isEmpty { return nil }
    let conditions = names.map { "n.\($0.column) = \($0.parameter)" }.joined(separator: " AND ")
    let bits = PacketSchema.blockBits
    let statement = try connection.prepare(
      """
      SELECT DISTINCT \(Column.list) FROM \(source)
      WHERE \(conditions) AND b.block BETWEEN \(low >> bits) AND \(high >> bits) ORDER BY 1 DESC
      """)
    for name in names { statement.bind(name.parameter, name.value) }
    var blocks: [Int64] = []
    try statement.forEachRow(of: Column.self) { blocks.append($0.int64(.block)) }
    return blocks
  }
}
