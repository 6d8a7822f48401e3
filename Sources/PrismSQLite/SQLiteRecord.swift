/// A row of a table as a value that reads and binds itself.
public protocol SQLiteRecord {
  /// The columns of its table, in their order.
  associatedtype Column: SQLiteColumn
  func bind(to insert: SQLiteInsert<Column>)
}

extension SQLiteRecord {
  /// - Parameter conflict: what SQLite does with a row that breaks a rule of the table: `OR IGNORE`, `OR REPLACE`, `OR FAIL`.
  /// - Parameter rows: of one statement.
  public static func insert(
    into table: String, _ conflict: String = "", rows: Int = 1, columns: String = Column.list
  ) -> String {
    let count = columns.split(separator: ",").count
    let row = "(" + repeatElement("?", count: count).joined(separator: ",") + ")"
    let all = repeatElement(row, count: rows).joined(separator: ",")
    return "INSERT \(conflict) INTO \(table) (\(columns)) VALUES \(all)"
  }
}

extension SQLiteConnection {
  /// Inserts one row; a row that breaks a rule of the table, such as a key that is there already, is left out.
  /// - Returns: whether it was inserted.
  @discardableResult
  public func insertOrIgnore<Record: SQLiteRecord>(_ record: Record, into table: String) throws(SQLiteError) -> Bool {
    let statement = try prepare(Record.insert(into: table, "OR IGNORE"))
    try statement.run(inserting: record)
    return changes == 1
  }
}

extension SQLiteStatement {
  /// Runs an INSERT that `SQLiteRecord.insert` made for one row.
  public func run<Record: SQLiteRecord>(inserting record: Record) throws(SQLiteError) {
    record.bind(to: SQLiteInsert(self))
    try run()
  }
}

/// The values of one row of an INSERT that lists the columns in their order.
public struct SQLiteInsert<Column: SQLiteColumn> {
  @usableFromInline let statement: SQLiteStatement
  @usableFromInline let base: Int32

  /// - Parameter row: among those that the statement inserts, each of `columnCount`.
  @inlinable public init(_ statement: SQLiteStatement, row: Int = 0, columnCount: Int = 0) {
    (self.statement, base) = (statement, Int32(row * columnCount) + 1)
  }

  /// Binds a value; SQLite keeps a copy.
  public func bind(_ column: Column, _ value: SQLValue) { statement.bind(base + column.index, value) }
  /// Binds a number.
  @inlinable public func bind(_ column: Column, _ value: Int64) { statement.bind(base + column.index, value) }
  /// Binds NULL.
  @inlinable public func bindNull(_ column: Column) { statement.bindNull(base + column.index) }

  /// Copies nothing: the bytes must stay where they are until the statement is reset or bound again.
  @inlinable public func bind(_ column: Column, uncopiedBlob bytes: UnsafeRawBufferPointer) {
    statement.bind(base + column.index, uncopiedBlob: bytes)
  }

  /// Copies nothing, as for `uncopiedBlob`. The bytes must be UTF-8.
  @inlinable public func bind(_ column: Column, uncopiedText bytes: UnsafeRawBufferPointer) {
    statement.bind(base + column.index, uncopiedText: bytes)
  }
}
