import PrismBase
import PrismProtocol

// The database or its folder, deleted or replaced under the daemon.
extension ReportStore {
  /// What one call copies before it lets others in: 32 MiB.
  private static let slicesAtOnce = 8

  static let displacedRefusal = Refusal(
    .internal, "the store's file was deleted under the daemon and is being written anew, the report was not taken",
    retryMilliseconds: 1000)

  static let displacedUnknown = Refusal(
    .unknown,
    "the store's file was deleted under the daemon and is being written anew: send it again under the same "
      + "reportId", retryMilliseconds: 1000)

  /// Looks whether the database is where it should be, and brings it back where it is not. What the daemon holds open is
  /// whole, committed reports included, for as long as it runs.
  /// - Returns: whether reports can be taken.
  @discardableResult
  func bringHome() -> Bool {
    guard let database = openDatabase, rescue != nil || !database.isHome() else { return true }
    board.enter(.displaced)
    options.log.fault(
      "store.displaced",
      "the database was deleted or replaced under the daemon: it is written anew from what the daemon holds open",
      ["file": options.databasePath], level: .error)
    do throws(SQLiteError) {
      if rescue == nil { rescue = try Rescue(database.connection, folder: options.folder, vfs: options.vfs) }
      guard let rescue else { return false }
      for _ in 0..<Self.slicesAtOnce {
        if try !rescue.step() {
          try settleIn(rescue)
          return true
        }
      }
    } catch {
      // The connection stays as it is: nothing else has the reports.
      rescue = nil
      board.failed(error.description, .displaced)
    }
    return false
  }

  private func settleIn(_ rescue: Rescue) throws(SQLiteError) {
    try relock()
    let foreign = try rescue.takePlace(of: options.databasePath, unixMilliseconds: options.time.unixMilliseconds)
    if let foreign { options.log.error("another file stood in its place; it is set aside", ["file": foreign]) }
    self.rescue = nil
    letGo()
    _ = try database
    marker.reopened()
    options.log.faultEnded("store.displaced", "the database is in its place again; nothing is lost")
  }
}
