import PrismBase
import PrismProtocol

// Bringing over what waits in databases that were set aside, slice by slice, while reports are taken and sent.
extension ReportStore {
  /// Pages that one slice looks at: a few milliseconds.
  private static let pagesPerSlice = 64

  /// true: there is more to do.
  func salvageSlice() throws(StoreError) -> Bool {
    guard let file = salvage.files.first else { return false }
    board.enter(.salvaging)
    let source = damagedDatabase(file.name)
    let end = source.map { $0.pages.count } ?? 0
    let pages = file.nextPage..<max(file.nextPage, min(end + 1, file.nextPage + Self.pagesPerSlice))
    let before = salvage
    do {
      let saved = try transaction { (database) throws(SQLiteError) in
        var saved = 0
        if let source {
          for page in pages { saved += try bringOver(source, page, database) }
        }
        salvage.files[0].nextPage = pages.upperBound
        if pages.upperBound > end { salvage.files.removeFirst() }
        if salvage.files.isEmpty { try endSalvage(database) }
        try salvage.write(database.connection)
        return saved
      }
      board.note { $0.salvagedRows += saved }
    } catch {
      if salvage.files.first?.name == file.name { salvage = before }
      throw error.storeError
    }
    if salvage.files.isEmpty { tellOfSalvage(before) }
    noteAwaited()
    return !salvage.files.isEmpty
  }

  private func damagedDatabase(_ name: String) -> DamagedDatabase? {
    if let source = salvageSource, source.name == name { return source.database }
    (salvageSource, salvageClaimed) = (nil, [:])
    guard let source = DamagedDatabase(path: options.folder + "/" + name) else { return nil }
    salvageClaimed = source.claimed.mapValues { IDRuns(union: $0) }
    salvageSource = (name, source)
    return source
  }

  /// The whole rows of one page that waited and whose names and contexts are known. - Returns: how many were not there yet.
  private func bringOver(_ source: DamagedDatabase, _ page: Int, _ database: StoreDatabase) throws(SQLiteError) -> Int {
    guard let table = source.table(of: page), let number = Int(table.dropFirst()), state.namespaces[number] != nil,
      table.hasPrefix("m") || table.hasPrefix("p")
    else { return 0 }
    let queue = QueueID(namespace: number, kind: table.hasPrefix("m") ? .meta : .payload)
    var (saved, bytes) = (0, 0)
    var first = LaneValues { _ in .max }
    for record in source.records(on: page) {
      try record.withWholeRow(hasPayload: queue.kind == .payload) { (row) throws(SQLiteError) in
        guard let lane = RowID(value: row.id).lane, salvageClaimed[queue]?.run(of: row.id) == nil,
          try rendering(of: row, queue, database) != nil,
          try !isSettled(row.id, queue, database), try insert(row, queue, database)
        else { return }
        saved += 1
        bytes += Int(row.size)
        first[lane] = min(first[lane], row.id)
      }
    }
    if saved > 0 { count(saved, bytes: bytes, first, queue) }
    return saved
  }

  /// false: it is there already.
  private func insert(_ row: StoredRow, _ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) -> Bool {
    let insert = try database.statement(.salvageRow(queue))
    row.bind(to: insert)
    try insert.run()
    guard database.connection.changes == 1 else { return false }
    if row.flags.contains(.clientID), let reportID = row.reportID,
      let owner = try owner(row.context, namespace: queue.namespace, database)
    {
      let claim = try database.statement(.salvageClientID)
      claim.bind(1, queue.namespace)
      claim.bind(2, ClientIDKey.text(String(decoding: reportID, as: UTF8.self), owner))
      claim.bind(3, row.id)
      try claim.run()
    }
    return true
  }

  /// A page that is older than it should be may have rows that left since.
  private func isSettled(_ row: Int64, _ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) -> Bool {
    if salvageSettled == nil {
      try writeSettled(database)
      var settled: [QueueID: [IDRuns]] = [:]
      let read = try database.connection.prepare("SELECT namespace, kind, members FROM settled")
      try read.forEachRow { row in
        let queue = QueueID(namespace: row.int(0), kind: QueueID.kind(numbered: row.int(1)))
        if let members = IDRuns(text: row.text(2)) { settled[queue, default: []].append(members) }
      }
      salvageSettled = settled.mapValues { IDRuns(union: $0) }
    }
    return salvageSettled?[queue]?.run(of: row) != nil
  }

  private func count(_ rows: Int, bytes: Int, _ first: LaneValues, _ queue: QueueID) {
    let known = min(rows, salvage.missing[queue, default: 0])
    salvage.missing[queue, default: 0] -= known
    // Rows that the ledger lost along with its last state.
    state[queue].ledger.stored += rows - known
    state[queue].ledger[.waiting] += rows - known
    state[queue].bytes += bytes
    var released = IDRuns()
    for lane in Lane.allCases where first[lane] != .max { released.append(first[lane]) }
    release(released, queue)
    state.shares[queue.namespace] = nil
    touched.insert(queue)
  }

  /// Nothing is left to be looked at: what was not found is lost, and its clients' ids are free again.
  private func endSalvage(_ database: StoreDatabase) throws(SQLiteError) {
    for (queue, missing) in salvage.missing where missing > 0 && state.namespaces[queue.namespace] != nil {
      // Rows that were found may have left meanwhile, never those that were not.
      let lost = min(missing, state[queue].ledger[.waiting])
      state[queue].ledger.move(lost, from: .waiting, to: .corrupt)
      touched.insert(queue)
      lostWithSalvage += lost
    }
    for number in state.namespaces.keys {
      let (metas, payloads) = (QueueID(namespace: number, kind: .meta), QueueID(namespace: number, kind: .payload))
      try database.connection.execute(
        """
        DELETE FROM client_ids WHERE namespace = \(number) AND delivered_time IS NULL
        AND row NOT IN (SELECT id FROM \(metas.table)) AND row NOT IN (SELECT id FROM \(payloads.table))
        AND row NOT IN (SELECT row FROM dead WHERE namespace = \(number))
        """)
    }
    (salvage.missing, salvage.sources, salvage.isLossy) = ([:], [], false)
  }

  /// What is read of the files that hold reports which are not brought over, for `status`.
  func noteLeftBehind() {
    let left = SetAside(options).leftBehind(besides: salvage.files.map(\.name))
    if board.current.leftBehind != left { board.note { $0.leftBehind = left } }
  }

  /// Rows of this queue are still to be brought over: what is claimed now would overtake them.
  func isAwaited(_ queue: QueueID) -> Bool { salvage.isAwaited(queue) }

  func noteAwaited() {
    let awaited = salvage.awaited(state)
    if board.current.awaited != awaited { board.note { $0.awaited = awaited } }
  }

  /// - Parameter progress: before its last slice.
  private func tellOfSalvage(_ progress: SalvageProgress) {
    let lost = lostWithSalvage
    if lost == 0 && !progress.isLossy { SetAside(options).markSalvaged(progress.sources) }
    noteLeftBehind()
    (lostWithSalvage, salvageSource, salvageSettled) = (0, nil, nil)
    board.note { $0.lostRows += lost }
    board.enter(.working)
    let fields: Logger.Fields = ["saved": String(board.current.salvagedRows), "lost": String(board.current.lostRows)]
    guard board.current.lostRows > 0 else {
      return options.log.info("everything was brought over from the damaged database", fields)
    }
    options.log.error("what was whole was brought over; the rest counts as corrupt", fields)
  }
}
