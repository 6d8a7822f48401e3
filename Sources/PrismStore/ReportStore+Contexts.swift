import PrismProtocol

// Contexts that no row refers to any more.
extension ReportStore {
  /// Those of ended connections whose last row has left. Rows of one context follow each other, so that it is enough to
  /// look at the oldest row that the namespace still has.
  func forgetContexts(_ database: StoreDatabase) throws(SQLiteError) {
    let inUse = contexts.idsInUse
    var oldest: [Int: Int64] = [:]
    var (ended, unused): ([Int64], [Int64]) = ([], [])
    let read = try database.statement(.oldContexts)
    read.bind(1, contextsSeen)
    var seen: Int64 = 0
    try read.forEachRow { (row) throws(SQLiteError) in
      let (id, namespace, last) = (row.int64(0), row.int(1), row.int64(2))
      seen = id
      if inUse.contains(id) { return }
      if last == .max { return ended.append(id) }
      if oldest[namespace] == nil { oldest[namespace] = try oldestSequence(namespace, database) }
      if oldest[namespace, default: .max] > last { unused.append(id) }
    }
    // The next call looks at the ones behind these; then at the first ones again.
    contextsSeen = seen
    for id in ended {
      let update = try database.statement(.endContext)
      update.bind(1, state.nextSequence - 1)
      update.bind(2, id)
      try update.run()
    }
    for id in unused {
      let delete = try database.statement(.deleteContext)
      delete.bind(1, id)
      try delete.run()
    }
  }

  /// Of the namespace's rows, claimed ones among them.
  private func oldestSequence(_ namespace: Int, _ database: StoreDatabase) throws(SQLiteError) -> Int64 {
    var oldest = Int64.max
    guard state.namespaces[namespace] != nil else { return oldest }
    for kind in ReportKind.allCases {
      let first = try database.statement(.firstRow(QueueID(namespace: namespace, kind: kind)))
      for lane in Lane.allCases {
        first.bind(1, LaneValues.bases[lane])
        first.bind(2, lane.idEnd)
        try first.forEachRow { oldest = min(oldest, RowID(value: $0.int64(0)).sequence) }
      }
    }
    return oldest
  }
}
