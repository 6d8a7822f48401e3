import CSQLite

/// What SQLite answered when it could not do as it was told. Bound values (a report's content) are never part of it.
public struct SQLiteError: Error, Equatable, CustomStringConvertible {
  /// SQLite's extended result code.
  public let code: Int32
  public let message: String
  /// The statement, with its `?`s; empty where none was involved.
  public let sql: String

  public init(code: Int32, message: String, sql: String = "") {
    (self.code, self.message, self.sql) = (code, message, sql)
  }

  init(_ handle: OpaquePointer?, sql: String = "") {
    let message = handle.flatMap { sqlite3_errmsg($0) }.map { String(cString: $0) } ?? "out of memory"
    self.init(code: handle.map { sqlite3_extended_errcode($0) } ?? SQLITE_NOMEM, message: message, sql: sql)
  }

  public var primaryCode: Int32 { code & 0xFF }
  static let full = SQLITE_FULL
  public var isDiskFull: Bool { primaryCode == SQLITE_FULL }
  /// The file is not a database, or its structure contradicts itself.
  public var isCorruption: Bool { primaryCode == SQLITE_CORRUPT || primaryCode == SQLITE_NOTADB }

  /// The disk, the rights, the memory: nothing that another file would change.
  var isEnvironment: Bool {
    code != SQLITE_IOERR | 2 << 8  // a read past the file's end: it was cut off
      && [
        SQLITE_IOERR, SQLITE_FULL, SQLITE_NOMEM, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH, SQLITE_BUSY, SQLITE_LOCKED,
      ].contains(primaryCode)
  }

  /// Not SQLite's: the database is of a version that this program doesn't know.
  static func newer(_ version: Int) -> SQLiteError { SQLiteError(code: -1, message: String(version)) }
  var newerVersion: Int? { code == -1 ? Int(message) : nil }

  public var description: String {
    "SQLite \(code): \(message)" + (sql.isEmpty ? "" : " (in: \(sql.prefix(200)))")
  }
}
