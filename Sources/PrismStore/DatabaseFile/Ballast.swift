import Glibc
import PrismBase

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
