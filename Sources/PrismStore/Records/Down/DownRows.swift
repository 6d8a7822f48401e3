import PrismProtocol
import PrismSQLite

/// Reads and writes records that the server keeps, with the links by which they refer to others.
struct DownRows: StoreOperations {
  /// Bytes of fields in one answer to `list`, after which the page ends.
  private static let pageBytesMax = 192 * 1024

  let transaction: StoreTransaction
  init(_ transaction: StoreTransaction) { self.transaction = transaction }

  // MARK: Reading

  func find(_ id: RecordID, in content: Int64) throws(SQLiteError) -> DownRecordRow? {
    let find = try transaction.statement(.down(.find))
    find.bind(":content", content)
    find.bind(":id", id.text)
    return try find.first(of: DownRecordRow.Column.self) { (row) throws(SQLiteError) in
      guard let record = DownRecordRow(row) else { throw .invalidContent }
      return record
    }
  }

  func page(
    after: RecordID?, limit: Int, in content: Int64
  ) throws(SQLiteError) -> (records: [StoredRecord], isMore: Bool) {
    let page = try transaction.statement(.down(.page))
    defer { page.reset() }
    page.bind(":content", content)
    page.bind(":after", after?.text ?? "")
    var (records, bytes): ([StoredRecord], Int) = ([], 0)
    while let row = try page.next(of: DownRecordRow.Column.self) {
      guard let record = DownRecordRow(row) else { throw .invalidContent }
      bytes += record.fields.count + record.id.text.utf8.count
      guard records.count < limit, records.isEmpty || bytes <= Self.pageBytesMax else { return (records, true) }
      records.append(record.value)
    }
    return (records, false)
  }

  // MARK: Writing

  /// - Returns: false if the id is there already; nothing was changed then.
  func insert(_ row: DownRecordRow, _ references: [String: RecordTableName]) throws(SQLiteError) -> Bool {
    try transaction.statement(.down(.insert)).run(inserting: row)
    guard transaction.database.connection.changes == 1 else { return false }
    try link(row, references, .insertLink)
    return true
  }

  /// - Parameter before: the record of the same id.
  func replace(
    _ before: DownRecordRow, with row: DownRecordRow, _ references: [String: RecordTableName]
  ) throws(SQLiteError) {
    try link(before, references, .removeLink)
    try transaction.statement(.down(.replace)).run(inserting: row)
    try link(row, references, .insertLink)
  }

  func remove(_ row: DownRecordRow, _ references: [String: RecordTableName]) throws(SQLiteError) {
    try link(row, references, .removeLink)
    let remove = try transaction.statement(.down(.remove))
    remove.bind(":content", row.content)
    remove.bind(":id", row.id.text)
    try remove.run()
  }

  private func link(
    _ row: DownRecordRow, _ references: [String: RecordTableName], _ statement: DownStatement
  ) throws(SQLiteError) {
    guard !references.isEmpty else { return }
    for target in Self.targets(of: row, references) {
      let link = try transaction.statement(.down(statement))
      link.bind(":content", row.content)
      link.bind(":target", target)
      link.bind(":id", row.id.text)
      try link.run()
    }
  }

  /// The targets of a record's references, as `down_links` has them: table and id.
  private static func targets(of row: DownRecordRow, _ references: [String: RecordTableName]) -> Set<String> {
    // Fields that are no tree refer to nothing: the scanner takes a repeated key, the tree does not.
    guard let fields = try? JSONValue(parsing: row.fields) else { return [] }
    return references.reduce(into: []) { targets, reference in
      guard let id = fields[reference.key]?.string else { return }
      targets.insert(target(reference.value, id))
    }
  }

  private static func target(_ table: RecordTableName, _ id: String) -> String { "\(table)/\(id)" }

  /// The records of a content that refer to a record.
  func referring(to id: RecordID, of table: RecordTableName, in content: Int64) throws(SQLiteError) -> [RecordID] {
    let links = try transaction.statement(.down(.links))
    links.bind(":content", content)
    links.bind(":target", Self.target(table, id.text))
    var found: [RecordID] = []
    try links.forEachRow(of: DownStatement.Key.self) { row in
      if let id = RecordID(row.text(.id)) { found.append(id) }
    }
    return found
  }

  /// Deletes a slice of what no program reads any more. - Returns: whether there is more.
  func sweep() throws(SQLiteError) -> Bool {
    guard let content = state.records.down.garbage.first else { return false }
    var deleted = 0
    for statement in [DownStatement.sweepRecords, .sweepLinks] {
      let sweep = try transaction.statement(.down(statement))
      sweep.bind(":content", content)
      try sweep.run()
      deleted += transaction.database.connection.changes
    }
    if deleted == 0 { state.records.down.garbage.removeFirst() }
    return !state.records.down.garbage.isEmpty
  }
}
