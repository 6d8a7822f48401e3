import Glibc

/// A file that keeps some space of the disk for the store. On a full disk SQLite can't even delete; with the ballast cut
/// it can, so uploads go on, and what was delivered makes room.
struct Ballast {
  private let path: String
  private let bytes: Int

  init(folder: String, bytes: Int) { (path, self.bytes) = (folder + "/ballast", bytes) }

  /// Takes the space. false: there is not so much.
  func restore() -> Bool {
    guard bytes > 0 else { return true }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return posix_fallocate(descriptor, 0, off_t(bytes)) == 0
  }

  func cut() { truncate(path, 0) }
}
