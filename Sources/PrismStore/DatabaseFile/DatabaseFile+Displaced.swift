import Glibc
import PrismBase
import PrismProtocol
import PrismRecovery
import PrismSQLite

// The database or its folder was deleted or replaced while it was open.
extension DatabaseFile {
  /// Slices that one call copies before other calls continue: 32 MiB.
  private static let slicesAtOnce = 8

  /// Checks whether the database is in its place, and brings it back if it is not. While the daemon runs, the file that
  /// it holds open is whole, committed reports included.
  /// - Returns: whether reports can be taken.
  @discardableResult
  func restore() -> Bool {
    guard let database = open, backup != nil || !database.isInPlace() else { return true }
    health.enter(.displaced)
    options.log.fault(
      "store.displaced",
      "the database was deleted or replaced while it was open: it is written again from what the daemon holds open",
      ["file": options.databasePath], level: .error)
    do throws(SQLiteError) {
      if backup == nil {
        backup = try UnlinkedDatabaseBackup(database.connection, folder: options.folder, vfs: options.vfs)
      }
      guard let backup else { return false }
      for _ in 0..<Self.slicesAtOnce {
        if try !backup.step() {
          try attach(backup)
          return true
        }
      }
    } catch {
      // The connection stays as it is: nothing else has the reports.
      backup = nil
      health.failed(error.description, .displaced)
    }
    return false
  }

  private func attach(_ backup: UnlinkedDatabaseBackup) throws(SQLiteError) {
    try relock()
    let foreign = try backup.takePlace(of: options.place, unixMilliseconds: options.time.unixMilliseconds)
    if let foreign { options.log.error("another file was in its place; it is set aside", ["file": foreign]) }
    self.backup = nil
    detach()
    _ = try opened()
    marker.reopened()
    options.log.faultEnded("store.displaced", "the database is in its place again; nothing is lost")
  }
}

extension Refusal {
  static let storeDisplaced = Refusal(
    .internal, "the store's file was deleted while it was open and is being written again, the report was not taken",
    retryMilliseconds: 1000)

  static let storeDisplacedUnknown = Refusal(
    .unknown,
    "the store's file was deleted while it was open and is being written again: send it again under the same reportId",
    retryMilliseconds: 1000)
}

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
  func takePlace(of place: DatabasePlace, unixMilliseconds: Int64) throws(SQLiteError) -> String? {
    try backup.finish()
    let foreign = place.freeName(SetAside.Cause.foreign.rawValue, unixMilliseconds: unixMilliseconds)
    let isForeign = place.bytes != nil
    if isForeign { place.move(to: foreign) }
    for suffix in ["-wal", "-shm"] { unlink(place.path + suffix) }
    guard rename(path, place.path) == 0 else {
      throw .inputOutput(String(cString: strerror(errno)), sql: "move the copy")
    }
    SideFile.syncFolder(place.folder)
    return isForeign ? place.path(of: foreign) : nil
  }
}
