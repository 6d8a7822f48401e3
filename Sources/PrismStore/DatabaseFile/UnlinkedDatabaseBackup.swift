import Glibc
import PrismBase
import PrismSQLite

/// Copies a database that lost its file, from the connection that still holds it open, into a new file. In slices: what the
/// connection writes meanwhile is copied too.
final class UnlinkedDatabaseBackup {
  /// 4 MiB.
  private static let pagesPerSlice = 1024

  private let path: String
  private let backup: SQLiteBackup

  /// - Parameter folder: made again if it is gone.
  init(_ source: SQLiteConnection, folder: String, vfs: String?) throws(SQLiteError) {
    mkdir(folder, 0o700)
    path = folder + "/prism.db.rescue"
    for suffix in ["", "-journal", "-wal"] { unlink(path + suffix) }
    backup = try SQLiteBackup(of: source, to: .init(path: path, vfs: vfs), pagesPerSlice: Self.pagesPerSlice)
  }

  /// Copies one slice. - Returns: whether there is more.
  func step() throws(SQLiteError) -> Bool { try backup.step() }

  /// Moves the copy, which is on the disk, to the database's place. A file of others there is set aside, and the rest of the
  /// old log removed.
  /// - Returns: the name of the file that was set aside; nil if no file was there.
  func takePlace(of database: String, unixMilliseconds: Int64) throws(SQLiteError) -> String? {
    try backup.finish()
    let foreign = "\(database).\(SetAside.Cause.foreign.rawValue)-\(unixMilliseconds)"
    let isForeign = access(database, F_OK) == 0 && rename(database, foreign) == 0
    if isForeign { rename(database + "-wal", foreign + "-wal") }
    for suffix in ["-wal", "-shm"] { unlink(database + suffix) }
    guard rename(path, database) == 0 else {
      throw .inputOutput(String(cString: strerror(errno)), sql: "move the copy")
    }
    SideFile.syncFolder(String(database[..<(database.lastIndex(of: "/") ?? database.startIndex)]))
    return isForeign ? foreign : nil
  }
}
