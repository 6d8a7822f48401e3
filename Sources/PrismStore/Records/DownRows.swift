import PrismProtocol
import PrismSQLite

/// Reads and writes records that the server keeps, with the links by which they refer to others, and those by which they are
/// found.
struct DownRows: PlainOperations {
  /// The longest value by which a record is found.
  private static let indexedBytesMax = 128

  let transaction: StoreTransaction

  // MARK: Reading

  func find(_ id: RecordID, in content: Int64) throws(SQLiteError) -> DownRecordRow? {
    let find = try transaction.statement(DownStatement.find).bind([":content": content, ":id": id.text])
    return try find.record(of: DownRecordRow.self)
  }

  func page(
    after: RecordID?, limit: Int, in content: Int64
  ) throws(SQLiteError) -> (records: [StoredRecord], isMore: Bool) {
    let rows = try transaction.statement(DownStatement.page).bind([":content": content, ":after": after?.text ?? ""])
    return try access.page(rows, limit: limit) { (row: DownRecordRow) in row.value }
  }

  /// The record whose indexed field has this value; of several the one with the least id.
  func find(_ value: String, by field: String, in content: Int64) throws(SQLiteError) -> DownRecordRow? {
    let find = try transaction.statement(DownStatement.indexed).bind([
      ":content": content, ":target": Self.target(field, holding: value),
    ])
    return try find.record(of: DownRecordRow.self)
  }

  // MARK: Writing

  /// - Parameter table: as it is declared; its references and its index are kept with the row.
  /// - Returns: false if the id is there already; nothing was changed then.
  func insert(_ row: DownRecordRow, of table: RecordTable) throws(SQLiteError) -> Bool {
    try transaction.statement(DownStatement.insert).run(inserting: row)
    guard transaction.database.connection.changes == 1 else { return false }
    try link(row, table, DownStatement.insertLink)
    return true
  }

  /// - Parameter before: the record of the same id.
  func replace(_ before: DownRecordRow, with row: DownRecordRow, of table: RecordTable) throws(SQLiteError) {
    try link(before, table, DownStatement.removeLink)
    try transaction.statement(DownStatement.replace).run(inserting: row)
    try link(row, table, DownStatement.insertLink)
  }

  func remove(_ row: DownRecordRow, of table: RecordTable) throws(SQLiteError) {
    try link(row, table, DownStatement.removeLink)
    try transaction.statement(DownStatement.remove).run([":content": row.content, ":id": row.id.text])
  }

  private func link(_ row: DownRecordRow, _ table: RecordTable, _ statement: SQL) throws(SQLiteError) {
    // Only of rows that programs read: those of `both` tables come in between.
    guard table.direction == .down, !(table.references.isEmpty && table.index.isEmpty) else { return }
    for target in Self.targets(of: row, table) {
      try transaction.statement(statement).run([":content": row.content, ":target": target, ":id": row.id.text])
    }
  }

  /// The targets of a record's references, as `down_links` has them, and the values of its indexed fields.
  private static func targets(of row: DownRecordRow, _ table: RecordTable) -> Set<String> {
    // Fields that are no tree refer to nothing: the scanner takes a repeated key, the tree does not.
    guard let fields = try? JSONValue(parsing: row.fields) else { return [] }
    var targets: Set<String> = []
    for (field, referred) in table.references {
      if let id = fields[field]?.string { targets.insert(target(referred, id)) }
    }
    for field in table.index {
      if let value = fields[field].flatMap(Self.indexed) { targets.insert(target(field, holding: value)) }
    }
    return targets
  }

  private static func target(_ table: RecordTableName, _ id: String) -> String { "\(table)/\(id)" }
  /// No table's name begins so, and no field's has a quote.
  private static func target(_ field: String, holding value: String) -> String { "=\(field)\"\(value)" }

  /// A value as the index has it: a text, or a number as it is written; nil: no record is found by it.
  static func indexed(_ value: JSONValue) -> String? {
    switch value {
    case .string(let text): (1...indexedBytesMax).contains(text.utf8.count) ? text : nil
    case .number(let text): text.utf8.count <= indexedBytesMax ? text : nil
    case .object, .array, .bool, .null: nil
    }
  }

  func referring(to id: RecordID, of table: RecordTableName, in content: Int64) throws(SQLiteError) -> [RecordID] {
    let links = try transaction.statement(DownStatement.links).bind([
      ":content": content, ":target": Self.target(table, id.text),
    ])
    return try links.values(of: DownStatement.Key.self) { RecordID($0.text(.id)) }
  }

  /// Deletes a slice of what no program reads any more. - Returns: whether there is more.
  func sweep() throws(SQLiteError) -> Bool {
    guard let content = state.records.down.garbage.first else { return false }
    var deleted = 0
    for statement in [DownStatement.sweepRecords, DownStatement.sweepLinks] {
      try transaction.statement(statement).run([":content": content])
      deleted += transaction.database.connection.changes
    }
    if deleted == 0 { state.records.down.garbage.removeFirst() }
    return !state.records.down.garbage.isEmpty
  }
}
