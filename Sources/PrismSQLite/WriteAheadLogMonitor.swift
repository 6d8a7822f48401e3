import CSQLite

/// Knows how long a connection's write-ahead log is, and copies it into the database. SQLite's automatic checkpoints are off
/// for this connection: they would take the place of the hook that counts the pages.
public final class WriteAheadLogMonitor {
  private let connection: SQLiteConnection
  private let pageBytes: Int
  /// How many pages the log holds, as SQLite says after each commit.
  private let pages = UnsafeMutablePointer<Int32>.allocate(capacity: 1)

  /// - Parameter pageBytes: of the database.
  public init(_ connection: SQLiteConnection, pageBytes: Int) {
    (self.connection, self.pageBytes) = (connection, pageBytes)
    pages.initialize(to: 0)
    sqlite3_wal_autocheckpoint(connection.handle, 0)
    sqlite3_wal_hook(
      connection.handle,
      { context, _, _, pages in
        context?.storeBytes(of: pages, as: Int32.self)
        return SQLITE_OK
      }, pages)
  }

  deinit {
    sqlite3_wal_hook(connection.handle, nil, nil)
    pages.deallocate()
  }

  /// Bytes that the next checkpoint copies at most.
  public var bytes: Int { Int(pages.pointee) * pageBytes }

  /// Copies the log into the database, as far as no reader prevents it.
  public func checkpoint() throws(SQLiteError) {
    guard sqlite3_wal_checkpoint_v2(connection.handle, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil) == SQLITE_OK else {
      throw SQLiteError(connection.handle, sql: "checkpoint")
    }
    pages.pointee = 0
  }

  /// Copies the log and returns its space to the disk, if no reader prevents it. After a failure the log is as before.
  public func empty() {
    sqlite3_busy_timeout(connection.handle, 0)
    defer { sqlite3_busy_timeout(connection.handle, SQLiteConnection.busyMilliseconds) }
    let code = sqlite3_wal_checkpoint_v2(connection.handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
    if code == SQLITE_OK { pages.pointee = 0 }
  }
}
