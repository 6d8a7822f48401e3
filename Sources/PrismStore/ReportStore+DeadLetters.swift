import PrismBase
import PrismProtocol

// Reports that the collector can't take: listed, shown, queued again, dropped.
extension ReportStore {
  private static let columns =
    "number, namespace, kind, row, type, created_time, flags, size, report_id, packet, status, message, dead_time, attempts, body, payload, checksum, user"

  /// In the order of their numbers. - Parameter after: the last number seen; 0 for the first page.
  public func deadLetters(of namespace: NamespaceName?, after: Int, limit: Int) throws(StoreError) -> [DeadLetter] {
    try reading { (database) throws(SQLiteError) in
      let select = try database.connection.prepare(
        "SELECT \(Self.columns) FROM dead WHERE number > ?1 AND (?2 IS NULL OR namespace = ?2) ORDER BY number LIMIT ?3"
      )
      select.bind(1, after)
      try bindNamespace(namespace, to: select, 2)
      select.bind(3, limit)
      var letters: [DeadLetter] = []
      try select.forEachRow { row in
        if let letter = letter(row) { letters.append(letter) }
      }
      return letters
    }
  }

  /// One of them with its whole meta and its payload; nil: there is none of this number.
  public func deadLetter(
    _ number: Int
  ) throws(StoreError) -> (letter: DeadLetter, meta: [UInt8], payload: [UInt8]?)? {
    try reading { (database) throws(SQLiteError) in
      let select = try database.connection.prepare("SELECT \(Self.columns) FROM dead WHERE number = ?")
      select.bind(1, number)
      defer { select.reset() }
      guard try select.step(), let letter = letter(select) else { return nil }
      let flags = RowFlags(rawValue: select.int64(6))
      var meta: [UInt8] = []
      let splicing = MetaSplicing(
        monitorType: letter.type.utf8, isBusiness: letter.namespace.isBusiness, context: [])
      Array(letter.reportID.utf8).withUnsafeBytes {
        splicing.append(
          .given($0), createdTime: flags.contains(.ownCreateTime) ? nil : letter.createdTime, body: select.blob(14),
          to: &meta)
      }
      return (letter, meta, letter.kind == .payload ? select.bytes(15) : nil)
    }
  }

  /// They wait again, in their old place; one that is not what was laid aside never does, and counts as corrupt.
  /// - Returns: how many.
  public func requeue(_ selection: DeadLetterSelection) throws(StoreError) -> Int {
    try settleDead(selection) { (row, queue, database) throws(SQLiteError) in
      guard Self.isWhole(row) else { return forget(row, queue, to: .corrupt) }
      var flags = RowFlags(rawValue: row.int64(6))
      flags.insert(.selfContained)
      let id = row.int64(3)
      let stored = StoredRow(
        id: id, type: row.int64(4), createdTime: row.int64(5), context: RowOwner(stored: row.int64(17)).contextColumn,
        flags: flags, size: row.int64(7),
        reportID: flags.contains(.clientID) ? row.blob(8) : nil, body: row.blob(14),
        payload: queue.kind == .payload ? row.blob(15) : nil)
      let insert = try database.statement(.insertRows(1, queue))
      stored.bind(to: insert)
      try insert.run()
      state[queue].ledger.move(1, from: .dead, to: .waiting)
      var members = IDRuns()
      members.append(id)
      release(members, queue)
      forgetIncompleteShares(queue)
      return false
    }
  }

  private static func isWhole(_ row: SQLiteStatement) -> Bool {
    let sum = DeadLetterRecord.sum(
      row: row.int64(3), type: row.int64(4), createdTime: row.int64(5), flags: row.int64(6), size: row.int64(7),
      reportID: row.bytes(8), body: row.bytes(14), payload: row.isNull(15) ? nil : row.bytes(15),
      owner: RowOwner(stored: row.int64(17)))
    return row.int64(16) == sum
  }

  /// Given up; counted as removed. - Returns: how many.
  public func drop(_ selection: DeadLetterSelection) throws(StoreError) -> Int {
    try settleDead(selection) { (row, queue, _) throws(SQLiteError) in forget(row, queue, to: .removed) }
  }

  /// Dead letters expire like rows.
  func expireDead(_ namespace: Int, before cutoff: Int64, _ database: StoreDatabase) throws(SQLiteError) {
    let select = try database.connection.prepare(
      "SELECT \(Self.columns) FROM dead WHERE namespace = ? AND created_time < ? LIMIT \(Self.sliceRowsMax)")
    select.bind(1, namespace)
    select.bind(2, cutoff)
    try consume(select, database) { (row, queue, _) throws(SQLiteError) in forget(row, queue, to: .expired) }
  }

  // MARK: Letters that leave

  /// Whether the letter is gone for good.
  private typealias Deed = (SQLiteStatement, QueueID, StoreDatabase) throws(SQLiteError) -> Bool

  private func settleDead(_ selection: DeadLetterSelection, _ deed: Deed) throws(StoreError) -> Int {
    do {
      return try transaction { (database) throws(SQLiteError) in
        let select: SQLiteStatement
        switch selection {
        case .number(let number):
          select = try database.connection.prepare("SELECT \(Self.columns) FROM dead WHERE number = ?1")
          select.bind(1, number)
        case .all(let namespace):
          select = try database.connection.prepare(
            "SELECT \(Self.columns) FROM dead WHERE ?1 IS NULL OR namespace = ?1")
          try bindNamespace(namespace, to: select, 1)
        }
        return try consume(select, database, deed)
      }
    } catch {
      throw error.storeError
    }
  }

  @discardableResult
  private func consume(_ select: SQLiteStatement, _ database: StoreDatabase, _ deed: Deed) throws(SQLiteError) -> Int {
    var numbers: [Int] = []
    var gone: [(key: String, row: Int64, queue: QueueID)] = []
    try select.forEachRow { (row) throws(SQLiteError) in
      let queue = QueueID(namespace: row.int(1), kind: QueueID.kind(numbered: row.int(2)))
      guard state.namespaces[queue.namespace] != nil else { return }
      if try deed(row, queue, database) {
        gone.append((ClientIDKey.text(row.text(8), RowOwner(stored: row.int64(17))), row.int64(3), queue))
      }
      touched.insert(queue)
      numbers.append(row.int(0))
    }
    let delete = try database.connection.prepare("DELETE FROM dead WHERE number = ?")
    for number in numbers {
      delete.bind(1, number)
      try delete.run()
    }
    for letter in gone { try freeClientID(letter.key, of: letter.row, letter.queue, database) }
    return numbers.count
  }

  private func forget(_ row: SQLiteStatement, _ queue: QueueID, to account: Ledger.Account) -> Bool {
    state[queue].remove(1, bytes: row.int(7), from: .dead, to: account)
    state.shares[queue.namespace]?.remove(row.int(7), from: RowOwner(stored: row.int64(17)))
    return true
  }

  private func bindNamespace(
    _ namespace: NamespaceName?, to statement: SQLiteStatement, _ index: Int32
  ) throws(SQLiteError) {
    guard let namespace else { return statement.bindNull(index) }
    statement.bind(index, state.number(of: namespace) ?? -1)
  }

  /// The row of `columns` that `statement` stands on.
  private func letter(_ row: SQLiteStatement) -> DeadLetter? {
    guard let namespace = state.namespaces[row.int(1)], let packet = PacketID(bytes: row.bytes(9)) else { return nil }
    let type = state.types[row.int64(4)].map { MetaSplicing.monitorType($0, in: namespace) }
    return DeadLetter(
      number: row.int(0), namespace: namespace, kind: QueueID.kind(numbered: row.int(2)), type: type ?? "",
      reportID: row.text(8), userID: RowOwner(stored: row.int64(17)).userID, createdTime: row.int64(5), packet: packet,
      cause: .init(
        status: row.int(10), message: row.text(11), unixMilliseconds: row.int64(12), attempts: row.int(13)),
      bytes: row.int(7))
  }
}
