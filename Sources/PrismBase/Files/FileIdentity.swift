import Glibc

/// Names a file by its device and inode: to tell it from another file that was put in its place.
public struct FileIdentity: Equatable, Sendable {
  private let device: UInt64, inode: UInt64

  /// nil if nothing is there. A symbolic link itself is meant, not what it points to.
  public init?(path: String) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return nil }
    (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
  }
}
