import CJoinedWrites
import CSQLite
import PrismProtocol

/// The store's file: its one connection, set up as the store needs it, and its prepared statements.
final class StoreDatabase {
  /// Two busy queues' worth is about 20; the bound keeps 1,000 namespaces from holding 8 MiB of statements.
  private static let statementsMax = 160

  let connection: SQLiteConnection
  private let path: String
  private var home: HomeWatch?
  private var statements: [StoreStatement: (statement: SQLiteStatement, lastUse: Int)] = [:]
  private var uses = 0
  /// How many pages the write-ahead log holds, as SQLite tells after each commit.
  private let walPages = UnsafeMutablePointer<Int32>.allocate(capacity: 1)

  /// Opens the file without reading its rows. - Throws: what SQLite says; `isCorruption` when it is no sound database.
  init(_ options: StoreOptions) throws(SQLiteError) {
    path = options.databasePath
    connection = try SQLiteConnection(.init(path: options.databasePath, vfs: Self.vfs(options)))
    walPages.initialize(to: 0)
    try connection.execute(
      """
      PRAGMA page_size = 4096;
      PRAGMA auto_vacuum = INCREMENTAL;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = \(options.durability == .full ? "FULL" : "NORMAL");
      PRAGMA secure_delete = OFF;
      PRAGMA trusted_schema = OFF;
      PRAGMA cell_size_check = ON;
      PRAGMA mmap_size = 0;
      PRAGMA wal_autocheckpoint = 0;
      PRAGMA journal_size_limit = 16777216;
      PRAGMA temp_store = MEMORY;
      """)
    if let pagesMax = options.pagesMax { try connection.execute("PRAGMA max_page_count = \(pagesMax)") }
    sqlite3_wal_hook(
      connection.handle,
      { context, _, _, pages in
        context?.storeBytes(of: pages, as: Int32.self)
        return SQLITE_OK
      }, walPages)
  }

  deinit {
    sqlite3_wal_hook(connection.handle, nil, nil)
    walPages.deallocate()
  }

  /// Without a sync before a commit is visible, what is joined would be lost with the process.
  private static func vfs(_ options: StoreOptions) -> String? {
    guard options.durability == .full, let name = prism_joined_writes_vfs(options.vfs) else { return options.vfs }
    return String(cString: name)
  }

  /// Its files are where they should be: from now on it is seen when they no longer are.
  func watchHome() { home = HomeWatch(path) }
  func isHome() -> Bool { home?.isHome() ?? true }

  var walBytes: Int { Int(walPages.pointee) * 4096 }

  func statement(_ name: StoreStatement) throws(SQLiteError) -> SQLiteStatement {
    uses += 1
    if let statement = statements[name]?.statement {
      statements[name]!.lastUse = uses
      return statement
    }
    if statements.count >= Self.statementsMax { dropLeastUsed() }
    let statement = try prepare(name)
    statements[name] = (statement, uses)
    return statement
  }

  /// The statements are this program's own, and so is the schema: where one doesn't fit the other, the file is damaged.
  private func prepare(_ name: StoreStatement) throws(SQLiteError) -> SQLiteStatement {
    do { return try connection.prepare(name.sql) } catch {
      guard error.primaryCode == SQLITE_ERROR else { throw error }
      throw SQLiteError(code: SQLITE_CORRUPT, message: error.message, sql: error.sql)
    }
  }

  private func dropLeastUsed() {
    let oldest = statements.sorted { $0.value.lastUse < $1.value.lastUse }.prefix(Self.statementsMax / 3)
    for (name, _) in oldest { statements[name] = nil }
  }

  /// Copies the log into the database file, as far as no reader holds it back.
  func checkpoint() throws(SQLiteError) {
    guard sqlite3_wal_checkpoint_v2(connection.handle, nil, SQLITE_CHECKPOINT_PASSIVE, nil, nil) == SQLITE_OK else {
      throw SQLiteError(connection.handle, sql: "checkpoint")
    }
    walPages.pointee = 0
  }

  /// Copies the log, and gives its space back to the disk, where no reader holds it. What fails leaves all as it was.
  func emptyLog() {
    sqlite3_busy_timeout(connection.handle, 0)
    defer { sqlite3_busy_timeout(connection.handle, SQLiteConnection.busyMilliseconds) }
    let code = sqlite3_wal_checkpoint_v2(connection.handle, nil, SQLITE_CHECKPOINT_TRUNCATE, nil, nil)
    if code == SQLITE_OK { walPages.pointee = 0 }
  }
}
