import PrismProtocol
import PrismSQLite

/// Inserts rows of one table, many with one statement: what SQLite does once for each statement costs about as much as
/// four rows.
struct RowInserter {
  /// Rows of one statement, the largest first.
  static let sizes = [48, 8, 1]

  private let table: RowTable
  private let columnCount: Int
  private let database: StoreDatabase
  private var waiting: [StoredRow] = []

  init(_ table: RowTable, _ database: StoreDatabase) {
    (self.table, self.database) = (table, database)
    columnCount = StoredRow.Column.allCases.count - (table.queue.kind.hasPayload ? 0 : 1)
  }

  /// The memory that the row points to must stay valid until `flush`.
  mutating func add(_ row: StoredRow) throws(SQLiteError) {
    waiting.append(row)
    if waiting.count == Self.sizes[0] { try flush() }
  }

  mutating func flush() throws(SQLiteError) {
    var next = 0
    for size in Self.sizes where waiting.count - next >= size {
      let insert = try database.statement(.insertRows(size, table))
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
