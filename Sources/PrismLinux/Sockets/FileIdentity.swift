import Glibc

/// Which file it is, whatever its name: to tell a file from another one that was put in its place.
struct FileIdentity: Equatable, Sendable {
  let device: UInt64, inode: UInt64

  /// nil when nothing is there. A symbolic link itself is meant, not what it points to.
  init?(path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
  }
}
