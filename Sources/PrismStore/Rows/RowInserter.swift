/// Inserts the rows of one queue, many in one statement where many follow each other: what SQLite does once a statement
/// costs about as much as four rows.
struct RowInserter {
  /// Rows of a statement, the most first: what waits is written with as few of them as there can be.
  static let sizes = [48, 8, 1]

  private let queue: QueueID
  private let database: StoreDatabase
  private var waiting: [StoredRow] = []

  init(_ queue: QueueID, _ database: StoreDatabase) { (self.queue, self.database) = (queue, database) }

  /// What the row points to must stay where it is until `flush`.
  mutating func add(_ row: StoredRow) throws(SQLiteError) {
    waiting.append(row)
    if waiting.count == Self.sizes[0] { try flush() }
  }

  mutating func flush() throws(SQLiteError) {
    var next = 0
    for size in Self.sizes where waiting.count - next >= size {
      let insert = try database.statement(.insertRows(size, queue))
      while waiting.count - next >= size {
        for position in 0..<size { waiting[next + position].bind(to: insert, position: position) }
        try insert.run()
        next += size
      }
    }
    waiting.removeAll(keepingCapacity: true)
  }
}
