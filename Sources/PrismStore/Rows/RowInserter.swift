/// Inserts the rows of one queue, many in one statement where many follow each other: what SQLite does once a statement
/// costs about as much as four rows.
struct RowInserter {
  static let rowsPerStatement = 16

  private let one: SQLiteStatement
  private let many: SQLiteStatement
  private var waiting: [StoredRow] = []

  init(_ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) {
    one = try database.statement(.insertRow(queue))
    many = try database.statement(.insertRows(queue))
    waiting.reserveCapacity(Self.rowsPerStatement)
  }

  /// What the row points to must stay where it is until `flush`.
  mutating func add(_ row: StoredRow) throws(SQLiteError) {
    waiting.append(row)
    if waiting.count == Self.rowsPerStatement { try flush() }
  }

  mutating func flush() throws(SQLiteError) {
    defer { waiting.removeAll(keepingCapacity: true) }
    guard waiting.count == Self.rowsPerStatement else {
      for row in waiting {
        row.bind(to: one)
        try one.run()
      }
      return
    }
    for (position, row) in waiting.enumerated() { row.bind(to: many, position: position) }
    try many.run()
  }
}
