import PrismBase
import PrismProtocol
import PrismSQLite

// A disk that is full, or will be. The log's pages become the file's only when they are copied, and that takes space
// too. If the log could grow until the last byte, the store could neither copy it nor delete a row.
extension DatabaseFile {
  private static let shortLogBytes = 1024 * 1024
  private static let plentyLogBytes = 16 * 1024 * 1024
  /// Stays free beside the ballast: for claims, dispositions, and what others write.
  private static let marginBytes = 1024 * 1024

  private var freeBytes: Int { disk.freeBytes(now: options.time.uptime) }

  /// A longer log is copied into the file after the commit was answered. All clients wait for the copy.
  func logBytesMax(of database: StoreDatabase) -> Int {
    guard database.log.bytes > Self.shortLogBytes else { return Self.plentyLogBytes }
    return contention.isPresent || freeBytes < DiskReserve.scarceBytes ? Self.shortLogBytes : Self.plentyLogBytes
  }

  /// Why reports of `bytes` can't be taken now; nil: they can. Ends the state of a full disk if it has space again.
  func refusal(for bytes: Int = 0) -> Refusal? {
    if backup != nil && !restore() { return .storeDisplaced }
    if disk.isFull {
      let open = self.open
      guard
        disk.recover(
          leaving: 2 * Self.marginBytes, now: options.time.uptime, makeSpace: { open?.log.empty() })
      else { return .diskIsFull }
      health.enter(workingState)
      options.log.faultEnded("store", "the disk has space again; reports are taken")
    }
    return fits(bytes) ? nil : .diskIsFull
  }

  /// Whether there is room for a commit of `bytes` in the log, and then in the file.
  private func fits(_ bytes: Int) -> Bool {
    guard bytes > 0, let open, freeBytes < DiskReserve.scarceBytes else { return true }
    let needed = 2 * (bytes + bytes / 4) + Self.marginBytes
    if freeBytes < needed + open.log.bytes { checkpoint() }
    guard !disk.isFull, freeBytes >= needed else {
      if !disk.isFull { recover(from: .diskFull("the disk is nearly full")) }
      return false
    }
    return true
  }

  var isCheckpointDue: Bool {
    checkpoints.isDue(logBytes: open?.log.bytes, now: options.time.uptime, interval: options.checkpointInterval)
  }

  /// - Parameter cuts: the log is cut then, since it holds rows that were delivered. A reader may prevent that.
  func checkpoint(cuts: Bool = false) {
    checkpoints.begin(now: options.time.uptime)
    do { try opened().log.checkpoint() } catch { recover(from: error) }
    if cuts { open?.log.empty() }
  }
}

extension Refusal {
  static let diskIsFull = Refusal(
    .diskFull, "no space left on the daemon's disk, the report was not taken", retryMilliseconds: 2000)
}
