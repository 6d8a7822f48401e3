import PrismProtocol
import PrismSQLite

/// Reads and writes single records in one transaction, and keeps the ledgers of their tables.
struct RecordAccess: StoreOperations {
  let transaction: StoreTransaction
  init(_ transaction: StoreTransaction) { self.transaction = transaction }

  // MARK: Reading

  /// nil if nothing was ever stored in the table.
  func table(_ name: RecordTableName, of namespace: NamespaceName) -> Int? {
    state.names.number(of: namespace).flatMap { state.records.number(name, namespace: $0) }
  }

  /// By its local id; a tombstone, too.
  func record(_ id: RecordID, in table: Int) throws(SQLiteError) -> RecordRow? {
    try first(.find, table, id)
  }

  /// By its local or its server's id; a tombstone, and a record that only the server changes, too.
  func holds(_ id: RecordID, in table: Int) throws(SQLiteError) -> Bool {
    if try record(named: id, in: table) != nil { return true }
    guard let content = state.records.down[table]?.content, content > 0 else { return false }
    return try DownRows(transaction).find(id, in: content) != nil
  }

  /// By its local or its server's id; a tombstone, too.
  func record(named id: RecordID, in table: Int) throws(SQLiteError) -> RecordRow? {
    if let record = try first(.find, table, id) { return record }
    return try first(.findServerID, table, id)
  }

  func record(serverID id: RecordID, in table: Int) throws(SQLiteError) -> RecordRow? {
    try first(.findServerID, table, id)
  }

  private func first(_ name: RecordStatement, _ table: Int, _ id: RecordID) throws(SQLiteError) -> RecordRow? {
    let find = try transaction.statement(.records(name)).bind([":tab": table, ":id": id.text])
    return try find.record(of: RecordRow.self)
  }

  func record(_ number: Int64) throws(SQLiteError) -> RecordRow? {
    let find = try transaction.statement(.records(.byNumber)).bind([":number": number])
    return try find.record(of: RecordRow.self)
  }

  /// How many records of the table a user put first, as far as `limit`.
  func count(of owner: RowOwner, in table: Int, limit: Int) throws(SQLiteError) -> Int {
    let count = try transaction.statement(.records(.owned)).bind([
      ":tab": table, ":owner": owner.number, ":limit": limit,
    ])
    return Int(try count.firstInt() ?? 0)
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
    if record.number == 0 {
      record.number = state.records.nextPosition()
      state.records[record.table].records += 1
      try transaction.statement(.records(.insert)).run(inserting: record)
    } else {
      try transaction.statement(.records(.replace)).run(inserting: record)
    }
  }

  func remove(_ record: RecordRow) throws(SQLiteError) {
    try transaction.statement(.records(.remove)).run([":number": record.number])
    state.records[record.table].records -= 1
  }

  /// Writes the ledgers of the tables that the transaction changed.
  func writeTables() throws(SQLiteError) {
    try writeDownTables()
    guard !state.records.touched.isEmpty else { return }
    let write = try transaction.statement(.records(.writeTable))
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
        try transaction.statement(.down(.writeTable)).run(inserting: table)
      } else {
        try transaction.statement(.down(.removeTable)).run([":tab": number])
      }
    }
    state.records.down.touched = []
  }
}
