import CSQLite

/// One connection to one SQLite file, for the one thread or queue that owns it: it is opened without SQLite's own mutexes.
public final class SQLiteConnection {
  public struct Options: Sendable {
    public var path: String
    public var isReadOnly = false
    /// A VFS that was registered under this name; nil: the system's.
    public var vfs: String?
    public init(path: String, isReadOnly: Bool = false, vfs: String? = nil) {
      (self.path, self.isReadOnly, self.vfs) = (path, isReadOnly, vfs)
    }
  }

  /// How long a lock that another connection holds is waited for.
  static let busyMilliseconds: Int32 = 2000

  let handle: OpaquePointer

  /// Opens the file, and makes it when it is missing and may be written. Nothing is read from it yet.
  /// The file's schema is not trusted, and no statement can change the file but by SQL.
  public init(_ options: Options) throws(SQLiteError) {
    var handle: OpaquePointer?
    let access = options.isReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
    let code = sqlite3_open_v2(options.path, &handle, access | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, options.vfs)
    guard code == SQLITE_OK, let handle else {
      let error = SQLiteError(handle, sql: "open \(options.path)")
      sqlite3_close_v2(handle)
      throw error
    }
    self.handle = handle
    _ = prism_sqlite3_set_defensive(handle)
    sqlite3_busy_timeout(handle, Self.busyMilliseconds)
  }

  deinit { sqlite3_close_v2(handle) }

  /// Runs every statement of `sql`; rows that they give are passed over.
  public func execute(_ sql: String) throws(SQLiteError) {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw SQLiteError(handle, sql: sql) }
  }

  /// A statement to be run many times.
  public func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteStatement(self, sql)
  }

  /// The first column of the first row; nil when there is no row, or it is NULL.
  public func firstInt(_ sql: String) throws(SQLiteError) -> Int64? {
    let statement = try prepare(sql)
    return try statement.step() && !statement.isNull(0) ? statement.int64(0) : nil
  }

  public func firstText(_ sql: String) throws(SQLiteError) -> String? {
    let statement = try prepare(sql)
    return try statement.step() && !statement.isNull(0) ? statement.text(0) : nil
  }

  /// Runs `body` in one transaction: all of it is done, or none. A commit that fails with an I/O error may yet have
  /// happened: only reading the file again can tell.
  public func transaction<Result>(_ body: () throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
    try execute("BEGIN IMMEDIATE")
    do {
      let result = try body()
      try execute("COMMIT")
      return result
    } catch {
      rollBack()
      throw error
    }
  }

  /// Ends the open transaction, if SQLite has not ended it by itself already.
  func rollBack() {
    if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
  }

  /// Closing it leaves the write-ahead log as it is, and where it is.
  func keepLogOnClose() { _ = prism_sqlite3_keep_log_on_close(handle) }

  /// Rows that the last INSERT, UPDATE or DELETE changed.
  public var changes: Int { Int(sqlite3_changes64(handle)) }
}
