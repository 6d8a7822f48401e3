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
        try run(insert, next..<next + size)
        next += size
      }
    }
    waiting.removeAll(keepingCapacity: true)
  }

  /// A row without an id gets the greatest one of the table plus 1. SQLite need not look for its place then, which takes
  /// twenty comparisons in a table of a million rows.
  private func run(_ insert: SQLiteStatement, _ rows: Range<Int>) throws(SQLiteError) {
    for row in rows {
      let values = SQLiteInsert<StoredRow.Column>(insert, row: row - rows.lowerBound, columnCount: columnCount)
      if row > rows.lowerBound, waiting[row].id == waiting[row - 1].id + 1, isLastOfTable(waiting[row]) {
        waiting[row].bindBehindLast(to: values)
      } else {
        waiting[row].bind(to: values)
      }
    }
    try insert.run()
    let (last, expected) = (database.connection.lastInsertedID, waiting[rows.upperBound - 1].id)
    guard last == expected else { throw .corrupt("\(table.name) has row \(last - 1), and the next one is \(expected)") }
  }

  /// Ids begin with the priority, and grow within it: no row of the last priority is behind a new one. Kept rows have tables
  /// of their own.
  private func isLastOfTable(_ row: StoredRow) -> Bool { row.id >= Self.lastBase }
  private static let lastBase = RowID(priority: .rest, sequence: 0).value
}

/// Counts of the rows that were written of one kind.
struct WrittenRows {
  var rows = 0
  var bytes = 0
}

/// The tables that take the new rows of a namespace: those that leave by themselves, or those of the ring.
struct RowTarget {
  private var metaRows: RowInserter
  private var payloadRows: RowInserter
  private(set) var metas = WrittenRows()
  private(set) var payloads = WrittenRows()
  let isInMemory: Bool

  func queues(_ namespace: Int) -> [QueueID] {
    RowKind.reports.map { QueueID(namespace: namespace, kind: $0, isInMemory: isInMemory) }
  }

  init(_ namespace: Int, isRing: Bool, inMemory: Bool = false, _ transaction: StoreTransaction) {
    isInMemory = inMemory
    func rows(_ kind: RowKind) -> RowInserter {
      let queue = QueueID(namespace: namespace, kind: kind, isInMemory: inMemory)
      let table = transaction.state[queue].segments.currentTable(queue, isRing: isRing)
      return RowInserter(table, transaction.database)
    }
    (metaRows, payloadRows) = (rows(.meta), rows(.payload))
  }

  mutating func insert(
    _ row: StoredRow, metaBytes: Int, payload: UnsafeRawBufferPointer?
  ) throws(SQLiteError) {
    try Self.insert(row, bytes: metaBytes, with: &metaRows, counting: &metas)
    guard let payload else { return }
    var row = row
    row.payload = payload
    try Self.insert(row, bytes: metaBytes + payload.count, with: &payloadRows, counting: &payloads)
  }

  private static func insert(
    _ row: StoredRow, bytes: Int, with rows: inout RowInserter, counting written: inout WrittenRows
  ) throws(SQLiteError) {
    var row = row
    row.size = Int64(bytes)
    try rows.add(row)
    written.rows += 1
    written.bytes += bytes
  }

  mutating func flush() throws(SQLiteError) {
    try metaRows.flush()
    try payloadRows.flush()
  }

  mutating func grow(_ kind: RowKind, by bytes: Int) {
    if kind == .meta { metas.bytes += bytes } else { payloads.bytes += bytes }
  }
}
