import CJoinedWrites
import CSQLite

/// One connection to one SQLite file, for the one thread or queue that owns it: it is opened without SQLite's own mutexes.
public final class SQLiteConnection {
  /// Which file is opened, and how.
  public struct Options: Sendable {
    /// Of the database file.
    public var path: String
    /// Default: false. A file that is missing is made.
    public var isReadOnly = false
    /// A VFS that was registered under this name; nil: the system's.
    public var vfs: String?

    /// The same values by their names.
    public init(path: String, isReadOnly: Bool = false, vfs: String? = nil) {
      (self.path, self.isReadOnly, self.vfs) = (path, isReadOnly, vfs)
    }
  }

  /// How long a statement waits for a lock that another connection holds.
  static let busyMilliseconds: Int32 = 2000

  @usableFromInline let handle: OpaquePointer

  /// Before SQLite is used; later it says that it is misused, and counts.
  private static let countsNoMemory: Void = { _ = prism_sqlite3_count_no_memory() }()

  /// Opens the file without reading it. The file's schema is not trusted, and no statement can corrupt the file on purpose.
  public init(_ options: Options) throws(SQLiteError) {
    _ = Self.countsNoMemory
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

  /// Keeps the write-ahead log as it is, and where it is, when the connection closes.
  public func keepLogOnClose() { _ = prism_sqlite3_keep_log_on_close(handle) }

  // MARK: Statements

  /// Runs every statement of `sql` and ignores the rows that they return.
  public func execute(_ sql: String) throws(SQLiteError) {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw SQLiteError(handle, sql: sql) }
  }

  /// Prepares a statement that is run many times.
  public func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteStatement(self, sql)
  }

  /// - Returns: the first column of the first row; nil if there is no row, or the value is NULL.
  public func firstInt(_ sql: String) throws(SQLiteError) -> Int64? { try prepare(sql).firstInt() }

  /// - Returns: the first column of the first row; nil if there is no row, or the value is NULL.
  public func firstText(_ sql: String) throws(SQLiteError) -> String? { try prepare(sql).firstText() }

  /// Rows that the last INSERT, UPDATE or DELETE changed.
  public var changes: Int { Int(sqlite3_changes64(handle)) }
  /// The id of the row that the last INSERT inserted.
  public var lastInsertedID: Int64 { sqlite3_last_insert_rowid(handle) }

  // MARK: Transactions

  /// Runs `body` in one transaction: all of it is done, or nothing. After a commit that fails with an I/O error only
  /// reading the file again tells whether it holds.
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

  /// Ends the open transaction, unless SQLite ended it already.
  public func rollBack() {
    if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
  }

  /// Applies those of `migrations` that are newer than the database, each in a transaction of its own: after a stop at any
  /// point the next call continues.
  /// - Parameter didApply: called in the migration's transaction, behind it.
  public func migrate(
    _ migrations: [SQLiteMigration], didApply: (SQLiteMigration) throws(SQLiteError) -> Void
  ) throws(SQLiteError) {
    let current = try version()
    for migration in migrations where migration.version > current {
      try transaction { () throws(SQLiteError) in
        try migration.apply(self)
        try execute("PRAGMA user_version = \(migration.version)")
        try didApply(migration)
      }
    }
  }

  /// `user_version`: 0 for a database that was not migrated.
  public func version() throws(SQLiteError) -> Int { Int(try firstInt("PRAGMA user_version") ?? 0) }
}

/// A virtual file system that joins SQLite's writes to its log: a commit costs the kernel a third less
/// (`Sources/CJoinedWrites`). Only for `synchronous = FULL`: without a sync before a commit is visible, what is joined
/// would be lost with the process.
public enum JoinedWrites {
  /// - Parameter base: a VFS that was registered under this name; nil: the system's.
  /// - Returns: the name to open a connection with; `base` if there is no memory for it.
  public static func vfs(over base: String?) -> String? {
    prism_joined_writes_vfs(base).map { String(cString: $0) } ?? base
  }
}

/// One step from a version of a database to the next: a value in a list that is only ever appended to.
public struct SQLiteMigration: Sendable {
  /// `user_version` once it is done.
  public let version: Int
  /// A description for people.
  public let name: String
  let apply: @Sendable (SQLiteConnection) throws(SQLiteError) -> Void

  /// - Parameter apply: runs in a transaction.
  public init(
    version: Int, name: String, apply: @escaping @Sendable (SQLiteConnection) throws(SQLiteError) -> Void
  ) {
    (self.version, self.name, self.apply) = (version, name, apply)
  }
}
