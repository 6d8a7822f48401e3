import CSQLite

/// Why SQLite could not run a statement. Bound values (a report's content) are never part of it.
public struct SQLiteError: Error, Equatable, CustomStringConvertible {
  /// SQLite's extended result code; negative for an error of this program's own.
  public let code: Int32
  /// SQLite's own words.
  public let message: String
  /// The statement with its parameters' names; empty if no statement was run.
  public let sql: String

  /// - Parameter sql: the statement that failed.
  public init(code: Int32, message: String, sql: String = "") {
    (self.code, self.message, self.sql) = (code, message, sql)
  }

  init(_ handle: OpaquePointer?, sql: String = "") {
    let message = handle.flatMap { sqlite3_errmsg($0) }.map { String(cString: $0) } ?? "out of memory"
    self.init(code: handle.map { sqlite3_extended_errcode($0) } ?? SQLITE_NOMEM, message: message, sql: sql)
  }

  /// The result code without its extension.
  public var primaryCode: Int32 { code & 0xFF }

  /// The code, the message and the beginning of the statement.
  public var description: String {
    "SQLite \(code): \(message)" + (sql.isEmpty ? "" : " (in: \(sql.prefix(200)))")
  }

  // MARK: What it says about the file

  /// No space is left on the disk.
  public var isDiskFull: Bool { primaryCode == SQLITE_FULL }
  /// The file is not a database, its structure contradicts itself, or it ends before what it says.
  public var isCorruption: Bool { primaryCode == SQLITE_CORRUPT || primaryCode == SQLITE_NOTADB || isShortRead }
  /// The statement does not fit the schema, or has an error of its own.
  public var isStatementError: Bool { primaryCode == SQLITE_ERROR }
  /// The file or its folder can't be written.
  public var isReadOnly: Bool { primaryCode == SQLITE_READONLY }
  /// A read past the file's end, which was cut off.
  private var isShortRead: Bool { code == SQLITE_IOERR | 2 << 8 }

  /// The disk, the rights, the memory, another process: another file would not change it.
  public var isEnvironment: Bool {
    !isShortRead
      && [
        SQLITE_IOERR, SQLITE_FULL, SQLITE_NOMEM, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH, SQLITE_BUSY, SQLITE_LOCKED,
        SQLITE_PROTOCOL, SQLITE_INTERRUPT, SQLITE_NOLFS,
      ].contains(primaryCode)
  }

  /// An error as SQLite's own for a full disk.
  public static func diskFull(_ message: String) -> SQLiteError { SQLiteError(code: SQLITE_FULL, message: message) }
  /// An error as SQLite's own for a damaged file.
  public static func corrupt(_ message: String, sql: String = "") -> SQLiteError {
    SQLiteError(code: SQLITE_CORRUPT, message: message, sql: sql)
  }
  /// An error as SQLite's own for a disk that fails.
  public static func inputOutput(_ message: String, sql: String = "") -> SQLiteError {
    SQLiteError(code: SQLITE_IOERR, message: message, sql: sql)
  }
}
