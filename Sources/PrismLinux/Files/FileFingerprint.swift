import Glibc

/// The identity of a file and the time of its last change, without reading it. Symbolic links are followed, so a link
/// to another target is another file.
struct FileFingerprint: Equatable, Sendable {
  private let device: UInt64, inode: UInt64, bytes: Int64
  private let modified: [Int], changed: [Int]

  /// nil when nothing is there.
  init?(_ path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    (device, inode, bytes) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
    modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
    changed = [status.st_ctim.tv_sec, status.st_ctim.tv_nsec]
  }
}
