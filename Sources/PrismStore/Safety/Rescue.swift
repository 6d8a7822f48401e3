import CSQLite
import Glibc

/// Copies a database that lost its file, from the connection that still holds it open, into a new file. In slices: what is
/// written meanwhile by the same connection is copied too.
final class Rescue {
  private static let pagesPerSlice: Int32 = 1024

  private let path: String
  private let source: SQLiteConnection
  private let target: SQLiteConnection
  private var backup: OpaquePointer?

  /// - Parameter folder: made again where it is gone.
  init(_ source: SQLiteConnection, folder: String, vfs: String?) throws(SQLiteError) {
    mkdir(folder, 0o700)
    path = folder + "/prism.db.rescue"
    self.source = source
    for suffix in ["", "-journal", "-wal"] { unlink(path + suffix) }
    target = try SQLiteConnection(.init(path: path, vfs: vfs))
    try target.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = FULL")
    backup = sqlite3_backup_init(target.handle, "main", source.handle, "main")
    guard backup != nil else { throw SQLiteError(target.handle, sql: "rescue") }
  }

  deinit {
    if let backup { sqlite3_backup_finish(backup) }
  }

  /// 4 MiB. true: there is more.
  func step() throws(SQLiteError) -> Bool {
    switch sqlite3_backup_step(backup, Self.pagesPerSlice) {
    case SQLITE_OK: return true
    case SQLITE_DONE: return false
    case let code: throw SQLiteError(code: code, message: "the copy failed", sql: "rescue")
    }
  }

  /// The copy is on the disk: it takes the database's place. Whoever's file stands there is set aside, and what is left of
  /// the old log removed.
  /// - Returns: the name of the file that was set aside; nil: none.
  func takePlace(of database: String, unixMilliseconds: Int64) throws(SQLiteError) -> String? {
    let code = sqlite3_backup_finish(backup)
    backup = nil
    guard code == SQLITE_OK else { throw SQLiteError(target.handle, sql: "rescue") }
    let foreign = "\(database).\(SetAside.Cause.foreign.rawValue)-\(unixMilliseconds)"
    let isForeign = access(database, F_OK) == 0 && rename(database, foreign) == 0
    if isForeign { rename(database + "-wal", foreign + "-wal") }
    for suffix in ["-wal", "-shm"] { unlink(database + suffix) }
    guard rename(path, database) == 0 else {
      throw SQLiteError(code: SQLITE_IOERR, message: String(cString: strerror(errno)), sql: "rescue")
    }
    SmallStateFile.syncFolder(String(database[..<(database.lastIndex(of: "/") ?? database.startIndex)]))
    return isForeign ? foreign : nil
  }
}
