public import CSQLite

/// A prepared statement. Values are bound by the parameters' names; rows are read by their columns' names.
///
/// Whether a statement was stepped to its end or left half way: it must be reset, so that no read transaction stays open.
public final class SQLiteStatement {
  @usableFromInline let handle: OpaquePointer
  // The connection must outlive its statements.
  private let connection: SQLiteConnection
  private let sql: String

  init(_ connection: SQLiteConnection, _ sql: String) throws(SQLiteError) {
    var handle: OpaquePointer?
    let code = sqlite3_prepare_v3(connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
    guard code == SQLITE_OK, let handle else { throw SQLiteError(connection.handle, sql: sql) }
    (self.handle, self.connection, self.sql) = (handle, connection, sql)
  }

  deinit { sqlite3_finalize(handle) }

  /// - Returns: whether there is a row to be read; false: the statement is done.
  @inlinable public func step() throws(SQLiteError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default: throw failure()
    }
  }

  @usableFromInline func failure() -> SQLiteError {
    let error = SQLiteError(connection.handle, sql: sql)
    sqlite3_reset(handle)
    return error
  }

  /// Makes the statement ready to be bound and run again. Bound values stay.
  @inlinable public func reset() { sqlite3_reset(handle) }

  /// Runs to the end and resets.
  public func run() throws(SQLiteError) {
    while try step() {}
    reset()
  }

  /// Binds these values by their parameters' names, then runs to the end and resets.
  public func run(_ values: KeyValuePairs<StaticString, any SQLConvertible>) throws(SQLiteError) {
    try bind(values).run()
  }

  // MARK: Rows

  /// The row that `step` found.
  @inlinable public func row<Column>(of columns: Column.Type) -> SQLiteRow<Column> {
    assert(sqlite3_column_count(handle) <= Column.allCases.count, "the statement returns more than \(columns)")
    return SQLiteRow(handle)
  }

  /// Steps, and returns the row; nil: the statement is done.
  @inlinable public func next<Column>(of columns: Column.Type) throws(SQLiteError) -> SQLiteRow<Column>? {
    try step() ? row(of: columns) : nil
  }

  /// Calls `body` with each row, then resets, also if it throws.
  @inlinable public func forEachRow<Column>(
    of columns: Column.Type, _ body: (SQLiteRow<Column>) throws(SQLiteError) -> Void
  ) throws(SQLiteError) {
    defer { reset() }
    while try step() { try body(row(of: columns)) }
  }

  /// The values that `body` makes of the rows; a row of which it makes nil is left out.
  @inlinable public func values<Column, Value>(
    of columns: Column.Type, _ body: (SQLiteRow<Column>) throws(SQLiteError) -> Value?
  ) throws(SQLiteError) -> [Value] {
    var values: [Value] = []
    try forEachRow(of: columns) { (row) throws(SQLiteError) in if let value = try body(row) { values.append(value) } }
    return values
  }

  /// Runs `body` with the first row, then resets. - Returns: nil if there is no row.
  @inlinable public func first<Column, Result>(
    of columns: Column.Type, _ body: (SQLiteRow<Column>) throws(SQLiteError) -> Result?
  ) throws(SQLiteError) -> Result? {
    defer { reset() }
    return try step() ? body(row(of: columns)) : nil
  }

  /// - Returns: whether there is a row.
  @inlinable public func hasRow() throws(SQLiteError) -> Bool {
    defer { reset() }
    return try step()
  }

  private enum First: String, SQLiteColumn { case first }

  /// - Returns: the first column of the first row; nil if there is no row, or the value is NULL.
  public func firstInt() throws(SQLiteError) -> Int64? { try firstValue { $0.int64(.first) } }

  /// - Returns: the first column of the first row; nil if there is no row, or the value is NULL.
  public func firstText() throws(SQLiteError) -> String? { try firstValue { $0.text(.first) } }

  private func firstValue<Value>(_ read: (SQLiteRow<First>) -> Value) throws(SQLiteError) -> Value? {
    defer { reset() }
    let row = try step() ? SQLiteRow<First>(handle) : nil  // a PRAGMA may return further columns
    return row.flatMap { $0.isNull(.first) ? nil : read($0) }
  }

  // MARK: Values

  /// Runs to the end and resets.
  /// - Parameter values: of the parameters, which have the names `$1` and on.
  /// - Returns: the rows, each with the values that the statement lists.
  public func rows(_ values: [any SQLConvertible]) throws(SQLiteError) -> [[SQLValue]] {
    for place in 1..<sqlite3_bind_parameter_count(handle) + 1 {
      let name = sqlite3_bind_parameter_name(handle, place).map { String(cString: $0) } ?? ""
      guard let number = Int(name.dropFirst()), values.indices.contains(number - 1) else {
        preconditionFailure("the parameter \(name) has no value: \(sql)")
      }
      bind(place, values[number - 1].sqlValue)
    }
    defer { reset() }
    var rows: [[SQLValue]] = []
    while try step() { rows.append((0..<sqlite3_column_count(handle)).map { value($0) }) }
    return rows
  }

  private func value(_ column: Int32) -> SQLValue {
    switch sqlite3_column_type(handle, column) {
    case SQLITE_INTEGER: .integer(sqlite3_column_int64(handle, column))
    case SQLITE_FLOAT: .real(sqlite3_column_double(handle, column))
    case SQLITE_NULL: .null
    case let type:
      type == SQLITE_TEXT ? .text(bytes(column)) : .blob(bytes(column))
    }
  }

  private func bytes(_ column: Int32) -> [UInt8] {
    let start = sqlite3_column_blob(handle, column)
    return [UInt8](UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column))))
  }

  func bind(_ place: Int32, _ value: SQLValue) {
    switch value {
    case .null: bindNull(place)
    case .integer(let value): bind(place, value)
    case .real(let value): check(sqlite3_bind_double(handle, place, value))
    // A nil pointer would be NULL.
    case .text(let bytes) where bytes.isEmpty: check(prism_sqlite3_bind_text_copy(handle, place, "", 0))
    case .text(let bytes):
      bytes.withUnsafeBytes { text in
        let start = text.bindMemory(to: CChar.self).baseAddress
        check(prism_sqlite3_bind_text_copy(handle, place, start, Int32(text.count)))
      }
    case .blob(let bytes) where bytes.isEmpty: check(sqlite3_bind_zeroblob(handle, place, 0))
    case .blob(let bytes):
      bytes.withUnsafeBytes { check(prism_sqlite3_bind_blob_copy(handle, place, $0.baseAddress, Int32($0.count))) }
    }
  }

  // MARK: Parameters

  /// Binds several values by their parameters' names.
  @discardableResult public func bind(_ values: KeyValuePairs<StaticString, any SQLConvertible>) -> Self {
    for (name, value) in values { bind(parameter(name), value.sqlValue) }
    return self
  }
  /// SQLite keeps a copy. - Parameter name: of a parameter, with its colon.
  public func bind(_ name: StaticString, _ value: some SQLConvertible) { bind(parameter(name), value.sqlValue) }

  /// Copies nothing: the bytes, which must be UTF-8, must stay where they are until the statement is reset or bound again.
  public func bind(_ name: StaticString, uncopiedText bytes: UnsafeRawBufferPointer) {
    bind(parameter(name), uncopiedText: bytes)
  }

  /// SQLite's own look-up: it compares the few names of one statement.
  private func parameter(_ name: StaticString) -> Int32 {
    name.withUTF8Buffer { utf8 in
      utf8.withMemoryRebound(to: CChar.self) { sqlite3_bind_parameter_index(handle, $0.baseAddress) }
    }
  }

  // MARK: Parameters by their place, for records

  @inlinable func bind(_ place: Int32, _ value: Int64) { check(sqlite3_bind_int64(handle, place, value)) }
  @inlinable func bindNull(_ place: Int32) { check(sqlite3_bind_null(handle, place)) }

  @inlinable func bind(_ place: Int32, uncopiedBlob bytes: UnsafeRawBufferPointer) {
    if bytes.isEmpty { return check(sqlite3_bind_zeroblob(handle, place, 0)) }
    check(sqlite3_bind_blob(handle, place, bytes.baseAddress, Int32(bytes.count), nil))
  }

  @inlinable func bind(_ place: Int32, uncopiedText bytes: UnsafeRawBufferPointer) {
    check(
      sqlite3_bind_text(handle, place, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count), nil))
  }

  @inlinable func check(_ code: Int32) {
    if code != SQLITE_OK { trap(code) }
  }

  @usableFromInline func trap(_ code: Int32) {
    preconditionFailure("the statement does not have the parameter that was bound (\(code)): \(sql)")
  }
}

/// Statements of one connection, each prepared once: for work that runs the same ones for many rows. Its owner makes it for that
/// work, and uses one statement at a time. Bound values stay, so each use binds all of them.
public final class SQLiteStatements {
  /// The connection, which lives as long.
  public let connection: SQLiteConnection
  private var prepared: [String: SQLiteStatement] = [:]

  public init(_ connection: SQLiteConnection) { self.connection = connection }

  /// - Parameter sql: of a fixed number of texts: each is kept.
  public func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    if let known = prepared[sql] { return known }
    let statement = try connection.prepare(sql)
    prepared[sql] = statement
    return statement
  }
}
