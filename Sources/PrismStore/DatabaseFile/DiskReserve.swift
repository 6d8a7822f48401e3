import Glibc
import PrismBase

/// The known space of the disk, and the ballast that keeps some of it for the store.
struct DiskReserve {
  private let ballast: Ballast
  private var gauge: SpaceGauge
  /// When to look again whether a full disk has space; nil: it is not full.
  private var fullUntil: Duration?

  init(_ options: StoreOptions) {
    ballast = Ballast(options)
    gauge = SpaceGauge(options.folder)
    if !ballast.restore() { fullUntil = options.time.uptime }
  }

  /// With less free than this the log is copied early, so that copying it fits into the ballast.
  static let scarceBytes = 64 * 1024 * 1024
  private static let retryInterval: Duration = .seconds(1)

  var isFull: Bool { fullUntil != nil }

  /// The disk is not full, and will not be soon.
  mutating func hasPlenty(now: Duration) -> Bool { !isFull && freeBytes(now: now) >= Self.scarceBytes }

  mutating func freeBytes(now: Duration) -> Int { gauge.freeBytes(now: now) }

  /// The disk is full: the ballast's space is for what the store must still write.
  mutating func cut(now: Duration) {
    ballast.cut()
    fullUntil = now + Self.retryInterval
  }

  /// Tries once a second whether the ballast has its space again. - Returns: whether the disk is not full any more.
  /// - Parameter makeSpace: called if there is too little at first.
  mutating func recover(leaving spare: Int, now: Duration, makeSpace: () -> Void) -> Bool {
    guard let until = fullUntil, now >= until else { return fullUntil == nil }
    if !ballast.restore(leaving: spare) { makeSpace() }
    guard ballast.restore(leaving: spare) else {
      fullUntil = now + Self.retryInterval
      return false
    }
    fullUntil = nil
    return true
  }
}

/// When the log is copied into the database.
struct Checkpoints {
  /// With less in the log it waits for `StoreOptions.checkpointInterval`.
  private static let restingBytesMax = 1024 * 1024

  private enum State { case idle, wanted, scheduled }

  private var state = State.idle
  private var doneAt: Duration?

  /// The log is long: it is copied after the commits so far are answered.
  mutating func request() { if state == .idle { state = .wanted } }

  /// - Returns: whether the caller must schedule a checkpoint.
  mutating func take() -> Bool {
    guard state == .wanted else { return false }
    state = .scheduled
    return true
  }

  mutating func begin(now: Duration) { (state, doneAt) = (.idle, now) }

  /// Whether a store that is not used should copy its log.
  func isDue(logBytes: Int?, now: Duration, interval: Duration) -> Bool {
    guard let doneAt, let logBytes, logBytes < Self.restingBytesMax else { return true }
    return now - doneAt >= interval
  }
}

/// How much may still be written to the disk of a folder, asked for before every commit.
struct SpaceGauge {
  /// Other programs can't write this amount within `trusted`.
  private static let plentyBytes = 1 << 30
  private static let trusted: Duration = .milliseconds(10)

  private let folder: String
  private var last: (bytes: Int, at: Duration)?

  init(_ folder: String) { self.folder = folder }

  /// The free bytes; `Int.max` if the system does not say. On a disk with plenty the figure may be some milliseconds
  /// old.
  mutating func freeBytes(now: Duration) -> Int {
    if let last, last.bytes > Self.plentyBytes, now - last.at < Self.trusted { return last.bytes }
    let bytes = DiskSpace.free(folder) ?? .max
    last = (bytes, now)
    return bytes
  }
}

enum DiskSpace {
  /// Bytes that may still be written to the disk of `folder`; nil if the system does not say.
  static func free(_ folder: String) -> Int? {
    var facts = statvfs()
    guard statvfs(folder, &facts) == 0 else { return nil }
    return Int(clamping: UInt64(facts.f_bavail).multipliedReportingOverflow(by: UInt64(facts.f_frsize)).partialValue)
  }
}

/// A file that keeps some space of the disk for the store. On a full disk SQLite can't even delete; with the ballast cut
/// it can, so uploads go on, and what was delivered makes room.
struct Ballast {
  private let folder: String
  private let bytes: Int
  private var path: String { folder + "/ballast" }

  init(_ options: StoreOptions) { (folder, bytes) = (options.folder, options.ballastBytes) }

  /// Takes the space. - Returns: false if the disk has too little space, or if less than `spare` would be left beside
  /// it.
  func restore(leaving spare: Int = 0) -> Bool {
    guard bytes > 0 else { return true }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    let isThere = posix_fallocate(descriptor, 0, off_t(bytes)) == 0
    guard isThere, spare == 0 || (DiskSpace.free(folder) ?? .max) >= spare else {
      // A call that failed may have taken some space, and may keep it.
      ftruncate(descriptor, 0)
      return false
    }
    return true
  }

  func cut() { truncate(path, 0) }

  /// Gives the space to a database that is about to be opened: SQLite makes its log and its index first. On a full disk that
  /// fails under several names.
  func cutIfFull(_ log: Logger) {
    guard let free = DiskSpace.free(folder), free < Self.openingBytes else { return }
    cut()
    log.error(
      "the disk is full: the database is opened with the space of the ballast; make space, then reports are taken",
      ["folder": folder])
  }

  /// Enough for the files that are made when a database is opened.
  private static let openingBytes = 256 * 1024
}
