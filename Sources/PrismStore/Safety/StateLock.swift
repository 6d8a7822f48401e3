import Glibc

/// Holds the state folder for this process alone, for as long as it lives: two processes that write one database destroy
/// it. The kernel lets go of it however the process ends.
public final class StateLock: Sendable {
  private let descriptor: Int32
  private let path: String

  /// - Throws: `locked`, `folder`.
  public init(folder: String) throws(StoreError) {
    path = folder + "/prism.lock"
    descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      if errno == ENOENT { throw .folder(path: folder, problem: "there is no such folder; make it, for prismd's user") }
      throw .folder(path: path, problem: String(cString: strerror(errno)))
    }
    // Thrown from here on, `deinit` closes.
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      if errno == EWOULDBLOCK { throw .locked(folder: folder) }
      throw .folder(path: path, problem: String(cString: strerror(errno)))
    }
  }

  /// false: the folder, or the lock in it, was deleted, and another process could take it.
  var isHome: Bool {
    var (held, found) = (stat(), stat())
    return fstat(descriptor, &held) == 0 && stat(path, &found) == 0 && held.st_ino == found.st_ino
      && held.st_dev == found.st_dev
  }

  deinit {
    // Closed only, it would stay locked for as long as a child that is being started has its copy.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }
}
