import PrismBase
import PrismProtocol
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
    let foreign = try backup.takePlace(of: options.databasePath, unixMilliseconds: options.time.unixMilliseconds)
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
