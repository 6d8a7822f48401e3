import PrismProtocol
import PrismSQLite

/// Inserts the rows of one queue, many with one statement: what SQLite does once for each statement costs about as much as
/// four rows.
struct RowInserter {
  /// Rows of one statement, the largest first.
  static let sizes = [48, 8, 1]

  private let queue: QueueID
  private let columnCount: Int
  private let database: StoreDatabase
  private var waiting: [StoredRow] = []

  init(_ queue: QueueID, _ database: StoreDatabase) {
    (self.queue, self.database) = (queue, database)
    columnCount = StoredRow.Column.allCases.count - (queue.kind.hasPayload ? 0 : 1)
  }

  /// The memory that the row points to must stay valid until `flush`.
  mutating func add(_ row: StoredRow) throws(SQLiteError) {
    waiting.append(row)
    if waiting.count == Self.sizes[0] { try flush() }
  }

  mutating func flush() throws(SQLiteError) {
    var next = 0
    for size in Self.sizes where waiting.count - next >= size {
      let insert = try database.statement(.insertRows(size, queue))
      while waiting.count - next >= size {
        for row in 0..<size {
          waiting[next + row].bind(to: SQLiteInsert(insert, row: row, columnCount: columnCount))
        }
        try insert.run()
        next += size
      }
    }
    waiting.removeAll(keepingCapacity: true)
  }
}
