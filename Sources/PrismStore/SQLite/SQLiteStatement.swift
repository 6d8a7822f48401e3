import CSQLite

/// A prepared statement. Indexes of parameters begin at 1, of columns at 0, as in SQLite.
///
/// Whoever steps it to its end or leaves it half way resets it, so that no read transaction stays open behind it.
public final class SQLiteStatement {
  private let handle: OpaquePointer
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

  /// true: a row is there to be read. false: done.
  public func step() throws(SQLiteError) -> Bool {
    switch sqlite3_step(handle) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    default:
      let error = SQLiteError(connection.handle, sql: sql)
      sqlite3_reset(handle)
      throw error
    }
  }

  /// Ready to be bound and run again. Values bound before stay.
  public func reset() { sqlite3_reset(handle) }

  /// Runs to the end and resets.
  public func run() throws(SQLiteError) {
    while try step() {}
    reset()
  }

  /// Calls `body` at each row, then resets, also when it throws.
  public func forEachRow(_ body: (SQLiteStatement) throws(SQLiteError) -> Void) throws(SQLiteError) {
    defer { reset() }
    while try step() { try body(self) }
  }
}

// MARK: Parameters. A failure here is a wrong index: the caller's mistake.
extension SQLiteStatement {
  public func bind(_ index: Int32, _ value: Int64) { check(sqlite3_bind_int64(handle, index, value)) }
  public func bind(_ index: Int32, _ value: Int) { check(sqlite3_bind_int64(handle, index, Int64(value))) }
  public func bindNull(_ index: Int32) { check(sqlite3_bind_null(handle, index)) }

  /// SQLite keeps a copy.
  public func bind(_ index: Int32, _ text: String) {
    var text = text
    text.withUTF8 { utf8 in
      utf8.withMemoryRebound(to: CChar.self) { bytes in
        // A nil pointer would be NULL; an empty string has one.
        let start = bytes.baseAddress ?? UnsafePointer(bitPattern: 1)
        check(prism_sqlite3_bind_text_copy(handle, index, start, Int32(bytes.count)))
      }
    }
  }

  /// SQLite keeps a copy; nil is NULL.
  public func bind(_ index: Int32, _ bytes: [UInt8]?) {
    guard let bytes else { return bindNull(index) }
    if bytes.isEmpty { return check(sqlite3_bind_zeroblob(handle, index, 0)) }
    bytes.withUnsafeBytes { check(prism_sqlite3_bind_blob_copy(handle, index, $0.baseAddress, Int32($0.count))) }
  }

  /// Nothing is copied: `bytes` must stay where they are until the statement is reset or bound anew.
  public func bind(_ index: Int32, uncopiedBlob bytes: UnsafeRawBufferPointer) {
    if bytes.isEmpty { return check(sqlite3_bind_zeroblob(handle, index, 0)) }
    check(sqlite3_bind_blob(handle, index, bytes.baseAddress, Int32(bytes.count), nil))
  }

  /// Nothing is copied, as for `uncopiedBlob`. The bytes must be UTF-8.
  public func bind(_ index: Int32, uncopiedText bytes: UnsafeRawBufferPointer) {
    check(
      sqlite3_bind_text(handle, index, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count), nil))
  }

  private func check(_ code: Int32) {
    precondition(code == SQLITE_OK, "a parameter that the statement doesn't have was bound (\(code)): \(sql)")
  }
}

// MARK: Columns of the row that `step` found
extension SQLiteStatement {
  public func int64(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
  public func int(_ column: Int32) -> Int { Int(sqlite3_column_int64(handle, column)) }
  public func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }

  /// The bytes as they stand in SQLite's memory: valid until the next step, reset or read of the same column.
  public func blob(_ column: Int32) -> UnsafeRawBufferPointer {
    // nil: NULL, or no bytes.
    guard let start = sqlite3_column_blob(handle, column) else { return UnsafeRawBufferPointer(start: nil, count: 0) }
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
  }

  public func bytes(_ column: Int32) -> [UInt8] { [UInt8](blob(column)) }

  /// Bytes that aren't UTF-8 are replaced.
  public func text(_ column: Int32) -> String { String(decoding: blob(column), as: UTF8.self) }
}
