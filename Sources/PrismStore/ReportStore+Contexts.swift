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

// MARK: Contexts between others whose rows stay
extension ReportStore {
  private static let sweptContextsMax = 1000

  /// One slice of a sweep, where a namespace has many contexts. true: there is more to do.
  func sweepContexts() throws(StoreError) -> Bool {
    guard salvage.files.isEmpty else {
      contextSweep = nil
      return false
    }
    // Since the last look there must be many new ones, wherever they are.
    let isDue = state.nextContext - contextsLookedAt >= Int64(options.contextsBeforeSweep)
    guard isDue || contextSweep != nil else { return false }
    do {
      return try transaction { (database) throws(SQLiteError) in
        if contextSweep == nil { contextSweep = try nextContextSweep(database) }
        guard var sweep = contextSweep else { return false }
        contextSweep = nil
        let isDone = try sweep.walks.isEmpty ? deleteUnused(&sweep, database) : walkRows(&sweep, database)
        contextSweep = isDone ? nil : sweep
        return true
      }
    } catch {
      contextSweep = nil
      throw error.storeError
    }
  }

  private func nextContextSweep(_ database: StoreDatabase) throws(SQLiteError) -> ContextSweep? {
    var counts: [Int: Int] = [:]
    try database.connection.prepare("SELECT namespace, count(*) FROM contexts GROUP BY namespace").forEachRow {
      counts[$0.int(0)] = $0.int(1)
    }
    let due = counts.first { namespace, count in
      state.namespaces[namespace] != nil && count >= sweepAt[namespace, default: options.contextsBeforeSweep]
    }
    guard let due else {
      contextsLookedAt = state.nextContext
      return nil
    }
    return ContextSweep(due.key, inUse: contexts.idsInUse, end: state.nextContext)
  }

  /// - Returns: false: the sweep is not done with it.
  private func walkRows(_ sweep: inout ContextSweep, _ database: StoreDatabase) throws(SQLiteError) -> Bool {
    guard var walk = sweep.walks.popLast() else { return false }
    let rows = try database.statement(.walkSizes(walk.queue))
    defer { rows.reset() }
    rows.bind(1, walk.after)
    rows.bind(2, walk.lane.idEnd)
    for _ in 0..<Self.sliceRowsMax {
      guard try rows.step() else { return false }
      walk.after = rows.int64(0)
      sweep.used.insert(rows.int64(4))
    }
    sweep.walks.append(walk)
    return false
  }

  private func deleteUnused(_ sweep: inout ContextSweep, _ database: StoreDatabase) throws(SQLiteError) -> Bool {
    var (ids, kept): ([Int64], Int) = ([], 0)
    let select = try database.connection.prepare(
      "SELECT id FROM contexts WHERE namespace = ? AND id > ? AND id < ? ORDER BY id LIMIT \(Self.sweptContextsMax)")
    select.bind(1, sweep.namespace)
    select.bind(2, sweep.lastContext)
    select.bind(3, sweep.end)
    try select.forEachRow { row in
      sweep.lastContext = row.int64(0)
      if sweep.used.contains(row.int64(0)) { kept += 1 } else { ids.append(row.int64(0)) }
    }
    for id in ids {
      let delete = try database.statement(.deleteContext)
      delete.bind(1, id)
      try delete.run()
    }
    guard ids.count + kept < Self.sweptContextsMax else { return false }
    sweepAt[sweep.namespace] = max(options.contextsBeforeSweep, 2 * sweep.used.count)
    return true
  }
}
