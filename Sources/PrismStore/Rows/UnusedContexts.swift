import PrismProtocol
import PrismSQLite

/// Forgets contexts that no row refers to any more.
struct UnusedContexts: PlainOperations {
  private static let sweptMax = 1000

  let transaction: StoreTransaction

  // MARK: Whose last row has left

  /// Deletes contexts of ended connections whose last row has left. Rows of one context follow each other, so it is enough to
  /// look at the oldest row that the namespace still has.
  func forget() throws(SQLiteError) {
    let inUse = state.contexts.idsInUse
    var oldest: [Int: Int64] = [:]
    var (ended, unused): ([Int64], [Int64]) = ([], [])
    let read = try transaction.statement(NameStatement.oldContexts).bind([":after": state.contexts.sweeps.lastForgotten]
    )
    var seen: Int64 = 0
    try read.forEachRow(of: ContextRecord.Column.self) { (row) throws(SQLiteError) in
      let (id, namespace, last) = (row.int64(.id), row.int(.namespace), row.int64(.lastSequence))
      seen = id
      if inUse.contains(id) { return }
      if last == .max { return ended.append(id) }
      if oldest[namespace] == nil { oldest[namespace] = try oldestSequence(namespace) }
      if oldest[namespace, default: .max] > last { unused.append(id) }
    }
    // The next call looks at those behind these; after the last ones it begins again.
    state.contexts.sweeps.lastForgotten = seen
    try end(ended)
    try delete(unused)
  }

  private func end(_ ids: [Int64]) throws(SQLiteError) {
    for id in ids {
      try transaction.statement(NameStatement.endContext).run([":sequence": state.nextSequence - 1, ":id": id])
    }
  }

  private func delete(_ ids: [Int64]) throws(SQLiteError) {
    for id in ids {
      try transaction.statement(NameStatement.deleteContext).run([":id": id])
    }
  }

  /// Of the namespace's rows, claimed ones among them.
  private func oldestSequence(_ namespace: Int) throws(SQLiteError) -> Int64 {
    var oldest = Int64.max
    guard state.names.namespaces[namespace] != nil else { return oldest }
    for queue in state.queues(of: namespace) {
      for priority in Priority.allCases {
        var rows = walk(priority, queue)
        defer { rows.reset() }
        if let row = try rows.next() { oldest = min(oldest, RowID(value: row.int64(.id)).sequence) }
      }
    }
    return oldest
  }

  private func walk(_ priority: Priority, _ queue: QueueID, after: Int64? = nil) -> RowWalk<RowHead.Column> {
    RowWalk(priority, queue, after: after, skipsClaimed: false, transaction)
  }

  // MARK: Between others whose rows stay

  /// Does one slice of a sweep, if a namespace has many contexts. - Returns: whether there is more to do.
  /// - Parameter countMin: contexts of a namespace that are worth a sweep.
  func sweep(countMin: Int) throws(SQLiteError) -> Bool {
    if state.contexts.sweeps.current == nil { state.contexts.sweeps.current = try nextSweep(countMin) }
    guard var sweep = state.contexts.sweeps.current else { return false }
    state.contexts.sweeps.current = nil
    let isDone = try sweep.walks.isEmpty ? deleteUnused(&sweep, countMin) : walkRows(&sweep)
    state.contexts.sweeps.current = isDone ? nil : sweep
    return true
  }

  private enum CountColumn: String, SQLiteColumn {
    case namespace
    case count = "count(*)"
  }

  private func nextSweep(_ countMin: Int) throws(SQLiteError) -> ContextSweep? {
    var counts: [Int: Int] = [:]
    let select = try transaction.prepare("SELECT \(CountColumn.list) FROM contexts GROUP BY namespace")
    try select.forEachRow(of: CountColumn.self) { counts[$0.int(.namespace)] = $0.int(.count) }
    let due = counts.first { namespace, count in
      state.names.namespaces[namespace] != nil
        && count >= state.contexts.sweeps.countsBefore[namespace, default: countMin]
    }
    guard let due else {
      state.contexts.sweeps.nextContextSeen = state.nextContext
      return nil
    }
    return ContextSweep(
      due.key, state.queues(of: due.key), inUse: state.contexts.idsInUse, end: state.nextContext)
  }

  /// - Returns: false: the sweep is not done with it.
  private func walkRows(_ sweep: inout ContextSweep) throws(SQLiteError) -> Bool {
    guard var walk = sweep.walks.popLast() else { return false }
    var rows = self.walk(walk.priority, walk.queue, after: walk.after)
    defer { rows.reset() }
    for _ in 0..<Retention.sliceRowsMax {
      guard let row = try rows.next() else { return false }
      walk.after = row.int64(.id)
      sweep.used.insert(row.int64(.context))
    }
    sweep.walks.append(walk)
    return false
  }

  private enum IDColumn: String, SQLiteColumn { case id }

  /// - Returns: whether it was the last slice.
  private func deleteUnused(_ sweep: inout ContextSweep, _ countMin: Int) throws(SQLiteError) -> Bool {
    var (ids, kept): ([Int64], Int) = ([], 0)
    let select = try transaction.prepare(
      """
      SELECT id FROM contexts WHERE namespace = :namespace AND id > :after AND id < :end
      ORDER BY id LIMIT \(Self.sweptMax)
      """)
    select.bind([":namespace": sweep.namespace, ":after": sweep.lastContext, ":end": sweep.end])
    try select.forEachRow(of: IDColumn.self) { row in
      sweep.lastContext = row.int64(.id)
      if sweep.used.contains(row.int64(.id)) { kept += 1 } else { ids.append(row.int64(.id)) }
    }
    try delete(ids)
    guard ids.count + kept < Self.sweptMax else { return false }
    state.contexts.sweeps.countsBefore[sweep.namespace] = max(countMin, 2 * sweep.used.count)
    return true
  }
}
