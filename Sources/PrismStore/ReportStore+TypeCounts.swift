import PrismBase
public import PrismProtocol

extension ReportStore {
  private static let rowsPerSlice = 20_000

  /// How many rows of which type `namespace` holds. Looks at all of them, for as long as a rehearsal may take.
  public func typeCounts(of namespace: NamespaceName) throws(StoreError) -> TypeCounts {
    guard let number = state.number(of: namespace) else { return TypeCounts() }
    let deadline = options.time.uptime + Self.rehearsalMax
    return try reading { (database) throws(SQLiteError) in
      var counts = TypeCounts()
      for kind in ReportKind.allCases {
        let table = QueueID(namespace: number, kind: kind).table
        let found = try count(table, until: deadline, database, isComplete: &counts.isComplete)
        if kind == .meta { counts.metas = found } else { counts.payloads = found }
      }
      return counts
    }
  }

  private func count(
    _ table: String, until deadline: Duration, _ database: StoreDatabase, isComplete: inout Bool
  ) throws(SQLiteError) -> [ReportType: Int] {
    var result: [ReportType: Int] = [:]
    var last = Int64.min
    let slice = try database.connection.prepare(
      """
      SELECT type, count(*), max(id)
      FROM (SELECT type, id FROM \(table) WHERE id > ? ORDER BY id LIMIT \(Self.rowsPerSlice)) GROUP BY type
      """)
    while true {
      slice.bind(1, last)
      var rows = 0
      try slice.forEachRow { row in
        rows += row.int(1)
        last = max(last, row.int64(2))
        // A type that can't be told is that of a damaged row.
        if let type = state.types[row.int64(0)] { result[type, default: 0] += row.int(1) }
      }
      if rows < Self.rowsPerSlice { return result }
      guard options.time.uptime < deadline else {
        isComplete = false
        return result
      }
    }
  }
}
