import PrismProtocol
import PrismSQLite

/// The rings of types with `keep: memory`: as `Ring`, in tables of a file in memory, with a ledger of their own there. Rows that
/// may leave move to the ring on the disk before, so that packets, receipts and delivered rows are there alone.
struct MemoryRing: PlainOperations {
  /// Of the folder in memory, for what others write there.
  private static let marginBytes = 1 << 20

  let transaction: StoreTransaction

  private func queues(_ namespace: Int) -> [QueueID] { QueueID.all(of: namespace).map(\.inMemory) }

  /// Begins segments for the rows of a batch, and overwrites the oldest ones if the folder is nearly full.
  /// - Returns: false: there is no place in memory, and the rows must be refused.
  func makeRoom(for batch: ReportBatch, _ namespace: Int) throws(SQLiteError) -> Bool {
    guard batch.hasKeptTypes(inMemory: true) else { return true }
    guard state.memory.isAttached else { return false }
    if !state.usesMemory(namespace) {
      try QueueTables.createInMemory(namespace, transaction.database.connection)
    }
    let (database, written) = (transaction.database, 2 * batch.arena.count)
    var space = try database.spaceInMemory()
    // The journal can't use the file's free pages.
    guard space.free >= Self.marginBytes / 2 + written else { return false }
    while space.free + space.reusable < Self.marginBytes + 2 * written {
      guard try Ring(transaction).overwriteOldest(queues(namespace)) else { return false }
      space = try database.spaceInMemory()
    }
    let bytesMax = queues(namespace).reduce(space.free + space.reusable) { $0 + state[$1].segments.keptBytes }
    for queue in queues(namespace) {
      try Ring(transaction).makeRoom(queue, bytesMax: min(bytesMax, batch.quota.memoryBytesMax))
    }
    return true
  }

  /// Moves those of the reports that are in memory to the ring on the disk, under their ids. That commit is the first of two: after
  /// a kill between them `forgetMoved` does the second.
  func moveOut(_ reports: IDRuns, _ namespace: Int) throws(SQLiteError) {
    guard state.usesMemory(namespace) else { return }
    for source in queues(namespace) where state[source].ledger[.kept] > 0 {
      var members = IDRuns()
      for id in reports.ids where try transaction.exists(id, source) { members.append(id) }
      guard let last = members.runs.last?.last else { continue }
      let queue = QueueID(namespace: namespace, kind: source.kind)
      try Ring(transaction).makeRoom(queue)
      for (row, key) in try transaction.clientIDs(of: members, source) {
        try transaction.statement(ClientIDStatement.disk.insertNew).run([
          ":namespace": namespace, ":key": key, ":row": row,
        ])
      }
      try copy(members, from: source, to: queue)
      state[queue].ledger.stored += members.count
      state[queue].ledger[.kept] += members.count
      state[queue].lastSequence = max(state[queue].lastSequence, RowID(value: last).sequence)
      let moved = try Ring(transaction).recount(members, queue, isKept: true)
      let place = state[queue].segments.place(of: last)
      state[queue].segments[place].bytes += moved.values.reduce(0) { $0 + $1.bytes }
      try forget(members, source)
    }
  }

  private func copy(_ members: IDRuns, from source: QueueID, to queue: QueueID) throws(SQLiteError) {
    for (place, run) in state[source].segments.pieces(of: members) {
      let table = RowTable(source, number: state[source].segments[place].number)
      for (place, run) in state[queue].segments.pieces(of: IDRuns(run)) {
        let target = RowTable(queue, number: state[queue].segments[place].number)
        for id in run.first...run.last { state[queue].segments.take(id) }
        let copy = try transaction.prepare(
          """
          INSERT INTO \(target.name) (\(queue.columns)) SELECT \(queue.columns) FROM \(table.name)
          WHERE id BETWEEN :first AND :last
          """)
        try copy.run([":first": run.first, ":last": run.last])
      }
    }
  }

  /// The rows are on the disk, and their reports are counted there.
  private func forget(_ members: IDRuns, _ source: QueueID) throws(SQLiteError) {
    state[source].ledger.stored -= members.count
    state[source].ledger[.kept] -= members.count
    try Ring(transaction).recount(members, source, isKept: false)
    for (row, key) in try transaction.clientIDs(of: members, source) {
      try transaction.statement(ClientIDStatement.memory.delete).run([
        ":namespace": source.namespace, ":key": key, ":row": row,
      ])
    }
    try transaction.deleteRows(members, source)
    try Segments(transaction).release(source, after: members)
  }

  /// The queue of this kind that holds the row, if it is in memory; else the one on the disk.
  func home(of row: Int64, _ queue: QueueID) throws(SQLiteError) -> QueueID {
    guard RowID.isKept(row), state.usesMemory(queue.namespace), try transaction.exists(row, queue.inMemory) else {
      return queue
    }
    return queue.inMemory
  }

  /// The second of the two commits of `moveOut`: the rows that may leave on the disk are no more in memory.
  fileprivate func forgetMoved() throws(SQLiteError) {
    for namespace in state.names.namespaces.keys where state.usesMemory(namespace) {
      for source in queues(namespace) {
        let releases = state[QueueID(namespace: namespace, kind: source.kind)].releases
        var members = IDRuns()
        for id in IDRuns(union: releases.map(\.members)).ids where try transaction.exists(id, source) {
          members.append(id)
        }
        if !members.isEmpty { try forget(members, source) }
      }
    }
  }
}

extension StoreTransaction {
  func forgetMoved() throws(SQLiteError) { try MemoryRing(self).forgetMoved() }
}
