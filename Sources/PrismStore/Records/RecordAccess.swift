import PrismProtocol
import PrismSQLite

/// Reads and writes single records in one transaction, and keeps the ledgers of their tables.
struct RecordAccess: PlainOperations {
  let transaction: StoreTransaction

  // MARK: Reading

  /// nil if nothing was ever stored in the table.
  func table(_ name: RecordTableName, of namespace: NamespaceName) -> Int? {
    state.names.number(of: namespace).flatMap { state.records.number(name, namespace: $0) }
  }

  /// By its local id; a tombstone, too.
  func record(_ id: RecordID, in table: Int) throws(SQLiteError) -> RecordRow? {
    try first(RecordStatement.find, table, id)
  }

  /// By its local or its server's id; a tombstone, and a record that only the server changes, too.
  func holds(_ id: RecordID, in table: Int) throws(SQLiteError) -> Bool {
    if try record(named: id, in: table) != nil { return true }
    guard let content = state.records.down[table]?.content, content > 0 else { return false }
    return try rows.find(id, in: content) != nil
  }

  /// By its local or its server's id; a tombstone, too.
  func record(named id: RecordID, in table: Int) throws(SQLiteError) -> RecordRow? {
    if let record = try first(RecordStatement.find, table, id) { return record }
    return try first(RecordStatement.findServerID, table, id)
  }

  /// The record that a member of another one refers to; nil: it refers to nothing, or to a record that is not here.
  func target(
    of member: JSONValue.Member, _ table: RecordTable, in namespace: NamespaceName
  ) throws(SQLiteError) -> RecordRow? {
    guard let name = table.references[member.key], let id = member.value.string.flatMap({ RecordID($0) }),
      let number = self.table(name, of: namespace)
    else { return nil }
    return try record(named: id, in: number)
  }

  /// The records of a statement that fit a page.
  func page<Row: CheckedRecord>(
    _ rows: SQLiteStatement, limit: Int, _ value: (Row) -> StoredRecord
  ) throws(SQLiteError) -> (records: [StoredRecord], isMore: Bool) {
    defer { rows.reset() }
    var (records, bytes): ([StoredRecord], Int) = ([], 0)
    while let row = try rows.next(of: Row.Column.self) {
      let record = value(try Row(whole: row))
      bytes += record.textBytes
      guard records.count < limit, records.isEmpty || bytes <= RecordRequest.pageBytesMax else {
        return (records, true)
      }
      records.append(record)
    }
    return (records, false)
  }

  func record(serverID id: RecordID, in table: Int) throws(SQLiteError) -> RecordRow? {
    try first(RecordStatement.findServerID, table, id)
  }

  private func first(_ find: SQL, _ table: Int, _ id: RecordID) throws(SQLiteError) -> RecordRow? {
    let select = try transaction.statement(find).bind([":tab": table, ":id": id.text])
    return present(try select.record(of: RecordRow.self))
  }

  /// With the time by the clock as it is set now.
  func present(_ read: RecordRow?) -> RecordRow? {
    guard var record = read, let stamp = record.clock else { return read }
    _ = transaction.memory.clock.read()
    let (time, isRight) = transaction.memory.clock.book.present(record.changedTime, of: stamp)
    (record.changedTime, record.clock) = (time, isRight ? stamp : nil)
    return record
  }

  func record(_ number: Int64) throws(SQLiteError) -> RecordRow? {
    let find = try transaction.statement(RecordStatement.byNumber).bind([":number": number])
    return present(try find.record(of: RecordRow.self))
  }

  /// How many records of the table a user put first, as far as `limit`.
  func count(of owner: RowOwner, in table: Int, limit: Int) throws(SQLiteError) -> Int {
    let count = try transaction.statement(RecordStatement.owned).bind([
      ":tab": table, ":owner": owner.number, ":limit": limit,
    ])
    return Int(try count.firstInt() ?? 0)
  }

  /// Refused records in the order of their numbers. - Parameter after: the last number seen; 0 for the first page.
  func refused(of namespace: NamespaceName?, after: Int64, limit: Int) throws(SQLiteError) -> [RefusedRecord] {
    // A table without refused changes is not looked at; the index holds refused records only.
    var found: [RefusedRecord] = []
    for table in state.records.tables.values where table.ledger[.dead] > 0 {
      guard let name = state.names.namespaces[table.namespace], namespace == nil || namespace == name else { continue }
      let select = try transaction.statement(RecordStatement.refused).bind([
        ":tab": table.number, ":after": after, ":limit": limit,
      ])
      found += try select.records(of: RecordRow.self).map {
        RefusedRecord(number: $0.number, namespace: name, table: table.name, record: $0.value)
      }
    }
    return Array(found.sorted { $0.number < $1.number }.prefix(limit))
  }

  // MARK: Writing

  /// The table's number; the first change gives it one.
  func number(of name: RecordTableName, in namespace: NamespaceName) throws(SQLiteError) -> Int {
    let number = try transaction.number(of: namespace)
    if let known = state.records.number(name, namespace: number) { return known }
    let table = RecordTableRow(number: state.records.nextTable, namespace: number, name: name)
    state.records.add(table)
    state.records.touched.insert(table.number)
    return table.number
  }

  /// Inserts a record that was changed here for the first time, or writes one again.
  func write(_ record: inout RecordRow) throws(SQLiteError) {
    if record.clock == nil { record.clock = transaction.memory.clock.stamp() }
    if record.number == 0 {
      record.number = state.records.nextPosition()
      state.records[record.table].records += 1
      try transaction.statement(RecordStatement.insert).run(inserting: record)
    } else {
      try transaction.statement(RecordStatement.replace).run(inserting: record)
    }
  }

  func remove(_ record: RecordRow) throws(SQLiteError) {
    try transaction.statement(RecordStatement.remove).run([":number": record.number])
    state.records[record.table].records -= 1
  }

  /// Writes the ledgers of the tables that the transaction changed.
  func writeTables() throws(SQLiteError) {
    try writeDownTables()
    guard !state.records.touched.isEmpty else { return }
    let write = try transaction.statement(RecordStatement.writeTable)
    let position = state.records.position
    for number in state.records.touched.sorted() {
      state.records[number].position = position
      let table = state.records[number]
      guard table.isPossible else { throw .invalidContent }
      try write.run(inserting: table)
    }
    state.records.touched = []
  }

  private func writeDownTables() throws(SQLiteError) {
    for number in state.records.down.touched.sorted() {
      if let table = state.records.down[number] {
        try transaction.statement(DownStatement.writeTable).run(inserting: table)
      } else {
        try transaction.statement(DownStatement.removeTable).run([":tab": number])
      }
    }
    state.records.down.touched = []
  }
}

extension StoreOperations {
  var access: RecordAccess { RecordAccess(transaction) }
  /// Records of `down` tables.
  var rows: DownRows { DownRows(transaction) }
}
