import CLinux
import Glibc
import PrismSQLite

/// The store's file: its one connection, set up as the store needs it, and its prepared statements.
final class StoreDatabase {
  static let pageBytes = 4096

  let connection: SQLiteConnection
  let log: WriteAheadLogMonitor
  /// See `StoreOptions`.
  let segmentBytes: Int
  /// The disk has room for delivered rows, until all of their table can be emptied.
  var keepsDelivered = false
  private let path: String
  private var identity: PathIdentity?
  /// On the tables of rows: two busy queues need about 20; the bound keeps 1,000 namespaces from holding 8 MiB of statements.
  private static let statementsMax = 160
  private var statements: [StoreStatement: SQLiteStatement] = [:]
  private var fixed: [SQL: SQLiteStatement] = [:]

  /// Opens the file without reading its rows. - Throws: what SQLite says; `isCorruption` if it is not a sound database.
  init(_ options: StoreOptions) throws(SQLiteError) {
    (path, segmentBytes) = (options.databasePath, options.segmentBytes)
    let vfs = options.durability == .full ? JoinedWrites.vfs(over: options.vfs) : options.vfs
    connection = try SQLiteConnection(.init(path: options.databasePath, vfs: vfs))
    try connection.execute(
      """
      PRAGMA page_size = \(Self.pageBytes);
      PRAGMA auto_vacuum = INCREMENTAL;
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = \(options.durability == .full ? "FULL" : "NORMAL");
      PRAGMA secure_delete = FAST;
      PRAGMA trusted_schema = OFF;
      PRAGMA cell_size_check = ON;
      PRAGMA mmap_size = 0;
      PRAGMA journal_size_limit = 16777216;
      PRAGMA temp_store = MEMORY;
      """)
    log = WriteAheadLogMonitor(connection, pageBytes: Self.pageBytes)
    if let pagesMax = options.pagesMax { try connection.execute("PRAGMA max_page_count = \(pagesMax)") }
  }

  /// Notes which files are open: from now on `isInPlace` tells if others delete or replace them.
  func watchPath() { identity = PathIdentity(path) }
  func isInPlace() -> Bool { identity?.isInPlace() ?? true }

  /// Bytes that may still be written to the folder in memory, and those of free pages of its file.
  func spaceInMemory() throws(SQLiteError) -> (free: Int, reusable: Int) {
    var facts = statvfs()
    guard let file = try connection.firstText("SELECT file FROM pragma_database_list WHERE name = 'mem'"),
      statvfs(String(file[..<(file.lastIndex(of: "/") ?? file.startIndex)]), &facts) == 0
    else { return (0, 0) }
    let free = UInt64(facts.f_bavail).multipliedReportingOverflow(by: UInt64(facts.f_frsize)).partialValue
    return (
      Int(clamping: free), Int(try connection.firstInt("PRAGMA mem.freelist_count") ?? 0) * Self.pageBytes
    )
  }

  func statement(_ sql: SQL) throws(SQLiteError) -> SQLiteStatement {
    if let statement = fixed[sql] { return statement }
    let statement = try prepare(sql.text)
    fixed[sql] = statement
    return statement
  }

  func statement(_ name: StoreStatement) throws(SQLiteError) -> SQLiteStatement {
    if let statement = statements[name] { return statement }
    if statements.count == Self.statementsMax { statements = [:] }
    let statement = try prepare(name.sql)
    statements[name] = statement
    return statement
  }

  /// Lets go of statements on a table that takes no more rows: each keeps some KiB of memory.
  func forgetInserts(into table: RowTable) {
    statements = statements.filter { if case .insertRows(_, table) = $0.key { false } else { true } }
  }

  /// The same for every statement on a table.
  func forgetStatements(on table: RowTable) {
    statements = statements.filter {
      switch $0.key {
      case .insertRows(_, let other), .rows(_, let other): other != table
      }
    }
  }

  /// The statements and the schema are this program's own: if one doesn't fit the other, the file is damaged.
  private func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    do { return try connection.prepare(sql) } catch {
      throw error.isStatementError ? .corrupt(error.message, sql: error.sql) : error
    }
  }
}

/// Tells whether the files that SQLite holds open are still the ones that their paths lead to. Two statx(2), some
/// microseconds: cheap enough for every commit.
struct PathIdentity {
  private struct Identity: Equatable {
    private var device: UInt64 = 0
    private var inode: UInt64 = 0

    init?(_ path: String) {
      guard prism_file_identity(path, &device, &inode) == 0 else { return nil }
    }
  }

  private let path: String
  private let logPath: String
  private let database: Identity?
  /// nil until the first commit made it.
  private var log: Identity?

  init(_ path: String) {
    (self.path, logPath) = (path, path + "-wal")
    database = Identity(path)
    log = Identity(logPath)
  }

  /// false: deleted or replaced by others; what is committed from now on would be gone with this process.
  mutating func isInPlace() -> Bool {
    if log == nil { log = Identity(logPath) }
    return Identity(path) == database && Identity(logPath) == log
  }
}
