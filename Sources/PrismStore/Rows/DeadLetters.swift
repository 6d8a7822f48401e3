import PrismProtocol
import PrismSQLite

/// Reports that the collector refuses: added, listed, shown, queued again, dropped.
struct DeadLetters: PlainOperations {
  typealias Column = DeadLetterRecord.Column

  let transaction: StoreTransaction

  // MARK: Adding

  /// Copies a packet's rows, each with everything that is needed to read it: the context becomes part of the body.
  func add(_ packet: PacketRecord, _ cause: Disposition.DeadCause) throws(SQLiteError) {
    let insert = try transaction.statement(PacketStatement.insertDead)
    try transaction.forEachRun(of: packet.members, packet.queue, .readRange) { (read) throws(SQLiteError) in
      try read.forEachRow(of: StoredRow.Column.self) { (row) throws(SQLiteError) in
        var letter = try record(StoredRow(row, hasPayload: packet.queue.kind.hasPayload), packet.queue)
        (letter.packet, letter.cause) = (packet.id, cause)
        try insert.run(inserting: letter)
      }
    }
  }

  private func record(_ row: StoredRow, _ queue: QueueID) throws(SQLiteError) -> DeadLetterRecord {
    var body = try transaction.rendering(of: row, queue)?.context ?? []
    if !body.isEmpty && !row.body.isEmpty { body.append(UInt8(ascii: ",")) }
    body.append(contentsOf: row.body)
    let given = row.reportID.map { String(decoding: $0, as: UTF8.self) }
    return DeadLetterRecord(
      queue: queue, row: row.id, type: row.type, createdTime: row.createdTime, flags: row.flags, size: Int(row.size),
      reportID: given ?? RowID(value: row.id).reportID(epoch: transaction.memory.epoch.text), body: body,
      payload: row.payload.map { [UInt8]($0) },
      owner: try transaction.owner(row.context, namespace: queue.namespace) ?? .unknown)
  }

  // MARK: Looking

  /// In the order of their numbers. - Parameter after: the last number seen; 0 for the first page.
  func page(of namespace: NamespaceName?, after: Int, limit: Int) throws(SQLiteError) -> [DeadLetter] {
    let select = try transaction.prepare(
      """
      SELECT \(Column.list) FROM dead WHERE number > :after AND (:namespace IS NULL OR namespace = :namespace)
      ORDER BY number LIMIT :limit
      """)
    select.bind([":after": after, ":namespace": number(of: namespace), ":limit": limit])
    return try select.values(of: Column.self) { letter($0) }
  }

  /// The first of them with its whole meta and its payload; nil if there is no such letter.
  func content(_ selection: DeadLetterSelection) throws(SQLiteError) -> DeadLetterContent? {
    try select(selection).first(of: Column.self) { row in
      guard let letter = letter(row) else { return nil }
      let flags = RowFlags(rawValue: row.int64(.flags))
      var meta: [UInt8] = []
      let splicing = MetaSplicing(
        monitorType: letter.type.utf8, isBusiness: letter.namespace.isBusiness, context: [])
      Array(letter.reportID.utf8).withUnsafeBytes {
        splicing.append(
          .given($0), createdTime: flags.contains(.ownCreateTime) ? nil : letter.createdTime, body: row.blob(.body),
          to: &meta)
      }
      return (letter, meta, letter.kind.hasPayload ? row.bytes(.payload) : nil)
    }
  }

  /// Where a row that is a dead letter is; nil if it is not one.
  func place(of row: Int64, _ queue: QueueID) throws(SQLiteError) -> TracedRow.Place? {
    let select = try transaction.prepare(
      """
      SELECT \(Column.list) FROM dead
      WHERE namespace = \(queue.namespace) AND kind = \(queue.kind.number) AND row = :row
      """)
    select.bind(":row", row)
    return try select.first(of: Column.self) { row in
      PacketID(bytes: row.bytes(.packet)).map { .dead(number: row.int(.number), $0, Self.cause(row)) }
    }
  }

  func has(_ row: Int64, _ queue: QueueID) throws(SQLiteError) -> Bool { try place(of: row, queue) != nil }

  private func letter(_ row: SQLiteRow<Column>) -> DeadLetter? {
    guard let namespace = state.names.namespaces[row.int(.namespace)], let packet = PacketID(bytes: row.bytes(.packet))
    else { return nil }
    let type = state.names.types[row.int64(.type)].map { MetaSplicing.monitorType($0, in: namespace) }
    return DeadLetter(
      number: row.int(.number), namespace: namespace, kind: RowKind(numbered: row.int(.kind)), type: type ?? "",
      reportID: row.text(.reportID), userID: RowOwner(stored: row.int64(.user)).userID,
      createdTime: row.int64(.createdTime), packet: packet, cause: Self.cause(row), bytes: row.int(.size))
  }

  private static func cause(_ row: SQLiteRow<Column>) -> Disposition.DeadCause {
    Disposition.DeadCause(
      status: row.int(.status), message: row.text(.message), unixMilliseconds: row.int64(.deadTime),
      attempts: row.int(.attempts))
  }

  /// nil for every namespace; −1 for one that never stored anything.
  private func number(of namespace: NamespaceName?) -> Int64? {
    namespace.map { Int64(state.names.number(of: $0) ?? -1) }
  }

  // MARK: Leaving

  /// Decides on one letter. - Returns: whether it is gone for good.
  private typealias Step = (SQLiteRow<Column>, QueueID) throws(SQLiteError) -> Bool

  /// Lets letters wait again in their old place. One that is not what was written is never sent, and counts as corrupt.
  /// - Returns: how many.
  func requeue(_ selection: DeadLetterSelection) throws(SQLiteError) -> Int {
    try take(selection) { (row, queue) throws(SQLiteError) in
      guard let letter = DeadLetterRecord(row), letter.isWhole == true else { return forget(row, queue, to: .corrupt) }
      if RowID.isKept(letter.row) { try Ring(transaction).makeRoom(queue) }
      try insert(letter)
      state[queue].ledger.move(1, from: .dead, to: .waiting)
      let members = IDRuns(letter.row)
      if members.isOfRing {
        state[queue].bytes -= letter.size
        try transaction.letGo(members, queue, by: "")
        return false
      }
      transaction.release(members, queue)
      ShareCount(transaction).forgetIncomplete(queue)
      return false
    }
  }

  private func insert(_ letter: DeadLetterRecord) throws(SQLiteError) {
    state[letter.queue].segments.take(letter.row)
    let insert = try transaction.statement(
      .insertRows(1, state[letter.queue].segments.table(of: letter.row, letter.queue)))
    try letter.withStoredRow { (row) throws(SQLiteError) in try insert.run(inserting: row) }
  }

  /// Gives letters up; they count as removed. - Returns: how many.
  func drop(_ selection: DeadLetterSelection) throws(SQLiteError) -> Int {
    try take(selection) { row, queue in forget(row, queue, to: .removed) }
  }

  /// Letters expire like rows. - Parameter end: rows below this sequence.
  func expire(_ namespace: Int, before end: Int64) throws(SQLiteError) -> PolicyState.Dropped {
    let select = try transaction.prepare(
      """
      SELECT \(Column.list) FROM dead
      WHERE namespace = :namespace AND row & \(Int64(1) << RowID.sequenceBits - 1) < :end LIMIT \(Retention.sliceRowsMax)
      """)
    select.bind([":namespace": namespace, ":end": end])
    var oldest = Int64.max
    let rows = try take(select) { row, queue in
      oldest = min(oldest, RowID(value: row.int64(.row)).sequence)
      return forget(row, queue, to: .expired)
    }
    return PolicyState.Dropped(rows: rows, oldestSequence: oldest)
  }

  private func select(_ selection: DeadLetterSelection) throws(SQLiteError) -> SQLiteStatement {
    let select = "SELECT \(Column.list) FROM dead WHERE"
    return switch selection {
    case .number(let number): try transaction.prepare("\(select) number = :number").bind([":number": number])
    case .report(let id): try transaction.prepare("\(select) report_id = :id").bind([":id": id])
    case .all(let namespace):
      try transaction.prepare("\(select) :namespace IS NULL OR namespace = :namespace").bind([
        ":namespace": number(of: namespace)
      ])
    }
  }

  private func take(_ selection: DeadLetterSelection, _ step: Step) throws(SQLiteError) -> Int {
    try take(try select(selection), step)
  }

  private func take(_ select: SQLiteStatement, _ step: Step) throws(SQLiteError) -> Int {
    var numbers: [Int] = []
    var gone: [(key: String, row: Int64, queue: QueueID)] = []
    try select.forEachRow(of: Column.self) { (row) throws(SQLiteError) in
      let queue = QueueID(namespace: row.int(.namespace), kind: RowKind(numbered: row.int(.kind)))
      // Its insert had one: what it was counts as corrupt once the file is set aside.
      guard state.names.namespaces[queue.namespace] != nil else {
        throw .corrupt("the dead letter \(row.int(.number)) is of no namespace")
      }
      if try step(row, queue) {
        let key = ClientIDKey.text(row.text(.reportID), RowOwner(stored: row.int64(.user)))
        gone.append((key, row.int64(.row), queue))
      }
      transaction.touch(queue)
      numbers.append(row.int(.number))
    }
    let delete = try transaction.prepare("DELETE FROM dead WHERE number = :number")
    for number in numbers {
      try delete.run([":number": number])
    }
    for letter in gone { try transaction.freeClientID(letter.key, of: letter.row, letter.queue) }
    return numbers.count
  }

  private func forget(_ row: SQLiteRow<Column>, _ queue: QueueID, to account: Ledger.Account) -> Bool {
    let size = row.int(.size)
    state[queue].remove(1, bytes: size, from: .dead, to: account)
    state.shares[queue.namespace]?.remove(size, from: RowOwner(stored: row.int64(.user)))
    transaction.memory.noteDeparture(of: IDRuns(row.int64(.row)), queue, to: account)
    return true
  }
}

extension DeadLetterRecord {
  /// Calls `body` with the row that it becomes when it is queued again.
  fileprivate func withStoredRow<Result>(
    _ body: (StoredRow) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result {
    var stored = StoredRow(
      id: row, type: type, createdTime: createdTime, context: owner.contextColumn,
      flags: flags.union(.selfContained), size: Int64(size), reportID: nil,
      body: UnsafeRawBufferPointer(start: nil, count: 0), payload: nil)
    return try Array(reportID.utf8).withUnsafeBufferPointer { (id) throws(SQLiteError) in
      stored.reportID = UnsafeRawBufferPointer(id)
      return try self.body.withUnsafeBufferPointer { (text) throws(SQLiteError) in
        stored.body = UnsafeRawBufferPointer(text)
        guard let payload else { return try body(stored) }
        return try payload.withUnsafeBufferPointer { (bytes) throws(SQLiteError) in
          stored.payload = UnsafeRawBufferPointer(bytes)
          return try body(stored)
        }
      }
    }
  }
}
