import PrismBase
import PrismProtocol
import PrismRecovery
import PrismSQLite

/// Brings over the rows that waited in databases which were set aside, slice by slice, while reports are taken and sent.
struct Salvage: PlainOperations {
  /// Pages that one slice reads: a few milliseconds.
  private static let pagesPerSlice = 64

  let transaction: StoreTransaction

  private var memory: StoreMemory { transaction.memory }

  /// Reads the next pages of the first file. - Returns: how many rows were brought over.
  func bringOverSlice(folder: String) throws(SQLiteError) -> Int {
    guard let file = state.salvage.files.first else { return 0 }
    let source = memory.salvage.open(file.name, in: folder)
    let end = source?.database.pageCount ?? 0
    let pages = file.nextPage..<max(file.nextPage, min(end + 1, file.nextPage + Self.pagesPerSlice))
    var saved = 0
    if let source {
      for page in pages { saved += try bringOver(source, page) }
    }
    state.salvage.files[0].nextPage = pages.upperBound
    if pages.upperBound > end { state.salvage.files.removeFirst() }
    if state.salvage.files.isEmpty { try endSalvage() }
    try state.salvage.write(transaction.database.connection)
    return saved
  }

  /// The whole rows of one page that waited and whose names and contexts are known. - Returns: how many were new.
  private func bringOver(_ source: SalvageSource, _ page: Int) throws(SQLiteError) -> Int {
    guard let queue = source.database.table(of: page).flatMap({ QueueID(table: $0) }),
      state.names.namespaces[queue.namespace] != nil
    else { return 0 }
    var (saved, bytes) = (0, 0)
    var (first, kept) = (PriorityValues { _ in .max }, 0)
    for record in source.database.records(on: page) {
      try record.withWholeRow(hasPayload: queue.kind.hasPayload) { (row) throws(SQLiteError) in
        guard let priority = RowID(value: row.id).priority, memory.salvage.claimed[queue]?.run(of: row.id) == nil,
          memory.salvage.spent[queue]?.run(of: row.id) == nil,
          try transaction.rendering(of: row, queue) != nil, try !isDelivered(row.id, queue), try insert(row, queue)
        else { return }
        saved += 1
        if priority == .kept {
          kept += 1
          keep(row, queue)
        } else {
          bytes += Int(row.size)
        }
        first[priority] = min(first[priority], row.id)
      }
    }
    if saved > 0 { count(saved, bytes: bytes, first, queue) }
    state[queue].ledger.move(kept, from: .waiting, to: .kept)
    return saved
  }

  /// - Returns: false if it is there already.
  private func insert(_ row: StoredRow, _ queue: QueueID) throws(SQLiteError) -> Bool {
    if RowID.isKept(row.id) { try Ring(transaction).makeRoom(queue) }
    try transaction.statement(.rows(.salvage, state[queue].segments.table(of: row.id, queue))).run(inserting: row)
    guard transaction.database.connection.changes == 1 else { return false }
    state[queue].segments.take(row.id)
    if row.flags.contains(.clientID), let reportID = row.reportID,
      let owner = try transaction.owner(row.context, namespace: queue.namespace)
    {
      try transaction.statement(ClientIDStatement.disk.insertNew).run([
        ":namespace": queue.namespace, ":key": ClientIDKey.text(String(decoding: reportID, as: UTF8.self), owner),
        ":row": row.id,
      ])
    }
    return true
  }

  private func keep(_ row: StoredRow, _ queue: QueueID) {
    let place = state[queue].segments.place(of: row.id)
    state[queue].segments[place].bytes += Int(row.size)
    state[queue].segments.keep(
      1, [.unknown: Int(row.size)], hasClientIDs: row.flags.contains(.clientID), at: place)
    state[queue].segments[place].kept?.owners = nil
  }

  /// A page that is older than it should be may have rows that left since.
  private func isDelivered(_ row: Int64, _ queue: QueueID) throws(SQLiteError) -> Bool {
    if memory.salvage.delivered == nil { memory.salvage.delivered = try readDelivered() }
    return memory.salvage.delivered?[queue]?.run(of: row) != nil
  }

  private func readDelivered() throws(SQLiteError) -> [QueueID: IDRuns] {
    try Deliveries(transaction).write()
    var delivered: [QueueID: [IDRuns]] = [:]
    let select = try transaction.prepare("SELECT \(DeliveryRecord.Column.list) FROM settled")
    try select.forEachRow(of: DeliveryRecord.Column.self) { row in
      if let record = DeliveryRecord(row) { delivered[record.queue, default: []].append(record.members) }
    }
    return delivered.mapValues { IDRuns(union: $0) }
  }

  private func count(_ rows: Int, bytes: Int, _ first: PriorityValues, _ queue: QueueID) {
    let known = min(rows, state.salvage.missing[queue, default: 0])
    state.salvage.missing[queue, default: 0] -= known
    // Rows that the ledger lost with its last state.
    state[queue].ledger.stored += rows - known
    state[queue].ledger[.waiting] += rows - known
    state[queue].bytes += bytes
    var released = IDRuns()
    for priority in Priority.allCases where first[priority] != .max { released.append(first[priority]) }
    transaction.release(released, queue)
    state.shares[queue.namespace] = nil
    transaction.touch(queue)
  }

  /// No page is left to be read: rows that were not found are lost, and their clients' ids are free again.
  private func endSalvage() throws(SQLiteError) {
    for (queue, missing) in state.salvage.missing where missing > 0 && state.names.namespaces[queue.namespace] != nil {
      // Rows that were found may have left meanwhile, never those that were not.
      let lost = min(missing, state[queue].ledger[.waiting])
      state[queue].ledger.move(lost, from: .waiting, to: .corrupt)
      transaction.touch(queue)
      memory.salvage.lostRows += lost
    }
    for number in state.names.namespaces.keys {
      let tables = QueueID.all(of: number).flatMap { state[$0].segments.tables($0) }
      let held = tables.map { "AND row NOT IN (SELECT id FROM \($0.name))" }
      try transaction.database.connection.execute(
        """
        DELETE FROM client_ids WHERE namespace = \(number) AND delivered_time IS NULL \(held.joined(separator: " "))
        AND row NOT IN (SELECT row FROM dead WHERE namespace = \(number))
        """)
    }
    (state.salvage.missing, state.salvage.sources, state.salvage.isLossy) = ([:], [], false)
  }
}

// The effects of a salvage on the store's health.
extension DatabaseFile {
  /// Does one slice. - Returns: whether there is more to do.
  func salvageSlice() throws(StoreError) -> Bool {
    guard let name = memory.state.salvage.files.first?.name else { return false }
    health.enter(.salvaging)
    let before = memory.state.salvage
    do {
      let folder = options.folder
      let saved = try write { (transaction) throws(SQLiteError) in
        try Salvage(transaction).bringOverSlice(folder: folder)
      }
      health.note { $0.salvagedRows += saved }
    } catch {
      if memory.state.salvage.files.first?.name == name { memory.state.salvage = before }
      throw error
    }
    let isDone = memory.state.salvage.files.isEmpty
    if isDone { endSalvage(before) }
    noteAwaited()
    return !isDone
  }

  /// - Parameter progress: before its last slice.
  private func endSalvage(_ progress: SalvageProgress) {
    let lost = memory.salvage.lostRows
    if lost == 0 && !progress.isLossy { SetAside(options).markSalvaged(progress.sources) }
    noteLeftBehind()
    memory.salvage.forgetFiles()
    memory.salvage.lostRows = 0
    health.note { $0.lostRows += lost }
    health.enter(.working)
    let (saved, lostInAll) = (health.current.salvagedRows, health.current.lostRows)
    let fields: Logger.Fields = ["saved": String(saved), "lost": String(lostInAll)]
    if lostInAll == 0 { return options.log.info("the damaged database was brought over completely", fields) }
    options.log.error("the whole rows were brought over; the rest counts as corrupt", fields)
  }

  /// Which set-aside databases hold reports that nothing brings over, for `status`.
  func noteLeftBehind() { SetAside(options).noteLeftBehind(memory.state.salvage, health) }

  /// How many rows are still to be brought over, for `status`.
  func noteAwaited() {
    let awaited = memory.state.salvage.awaited(memory.state.names)
    if health.current.awaited != awaited { health.note { $0.awaited = awaited } }
  }
}
