import PrismBase
import PrismProtocol

// A disk that is full, or will be. The log's pages become the file's only once they are copied, and that takes space as
// well: a store that let its log grow until the last byte could neither copy it nor delete a row, on a disk that nobody
// else makes room on.
extension ReportStore {
  /// With less free than this the log is copied early, so that copying it fits into the ballast.
  private static let scarceBytes = 64 * 1024 * 1024
  private static let scarceLogBytes = 1024 * 1024
  private static let plentyLogBytes = 16 * 1024 * 1024
  /// What stays free beside the ballast: for claims, settlements, and what others write.
  private static let marginBytes = 1024 * 1024

  private var freeBytes: Int { space.freeBytes(now: options.time.uptime) }

  /// Past this much the log is copied into the file after the commit was answered.
  func logBytesMax(of database: StoreDatabase) -> Int {
    guard database.walBytes > Self.scarceLogBytes else { return Self.plentyLogBytes }
    return freeBytes < Self.scarceBytes ? Self.scarceLogBytes : Self.plentyLogBytes
  }

  /// Why reports of `bytes` can't be taken now; nil: they can. A full disk is over once the ballast has its space again;
  /// that is tried once a second.
  func refusalNow(for bytes: Int = 0) -> Refusal? {
    if rescue != nil && !bringHome() { return Self.displacedRefusal }
    if let until = fullUntil {
      let now = options.time.uptime
      guard now >= until, restoreBallast() else {
        if now >= until { fullUntil = now + .seconds(1) }
        return Self.diskFullRefusal
      }
      fullUntil = nil
      board.enter(salvage.files.isEmpty ? .working : .salvaging)
      options.log.faultEnded("store", "the disk has space again; reports are taken")
    }
    return fits(bytes) ? nil : Self.diskFullRefusal
  }

  private func restoreBallast() -> Bool {
    if ballast.restore(leaving: 2 * Self.marginBytes) { return true }
    openDatabase?.emptyLog()
    return ballast.restore(leaving: 2 * Self.marginBytes)
  }

  /// Whether there is room for a commit of `bytes` in the log, and then in the file.
  private func fits(_ bytes: Int) -> Bool {
    guard bytes > 0, let openDatabase, freeBytes < Self.scarceBytes else { return true }
    let needed = 2 * (bytes + bytes / 4) + Self.marginBytes
    if freeBytes < needed + openDatabase.walBytes { checkpoint() }
    guard fullUntil == nil, freeBytes >= needed else {
      if fullUntil == nil { recover(from: SQLiteError(code: SQLiteError.full, message: "the disk is nearly full")) }
      return false
    }
    return true
  }
}
