import CSQLite

/// Copies a database from an open connection into a new file, in slices. Changes by the same connection meanwhile are
/// copied too (https://www.sqlite.org/backup.html).
public final class SQLiteBackup {
  private let source: SQLiteConnection
  private let target: SQLiteConnection
  private let pagesPerSlice: Int32
  private var backup: OpaquePointer?

  /// - Parameter target: a new file.
  public init(
    of source: SQLiteConnection, to target: SQLiteConnection.Options, pagesPerSlice: Int
  ) throws(SQLiteError) {
    (self.source, self.pagesPerSlice) = (source, Int32(pagesPerSlice))
    self.target = try SQLiteConnection(target)
    try self.target.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL")
    backup = sqlite3_backup_init(self.target.handle, "main", source.handle, "main")
    guard backup != nil else { throw SQLiteError(self.target.handle, sql: "backup") }
  }

  deinit {
    if let backup { sqlite3_backup_finish(backup) }
  }

  /// Copies one slice. - Returns: whether there is more.
  public func step() throws(SQLiteError) -> Bool {
    switch sqlite3_backup_step(backup, pagesPerSlice) {
    case SQLITE_OK: return true
    case SQLITE_DONE: return false
    case let code: throw SQLiteError(code: code, message: "the copy failed", sql: "backup")
    }
  }

  /// Ends the copy: it is on the disk, whole.
  public func finish() throws(SQLiteError) {
    let code = sqlite3_backup_finish(backup)
    backup = nil
    guard code == SQLITE_OK else { throw SQLiteError(target.handle, sql: "backup") }
  }
}
