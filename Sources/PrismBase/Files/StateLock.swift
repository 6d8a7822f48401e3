import Glibc

/// Holds the state folder for this process alone, for as long as it lives: two processes that write one database destroy
/// it. The kernel releases it however the process ends.
public final class StateLock: Sendable {
  /// Why the folder can't be held.
  public enum Failure: Error, Equatable, CustomStringConvertible {
    /// Another process holds it.
    case locked(folder: String)
    case folder(path: String, problem: String)

    public var description: String {
      switch self {
      case .locked(let folder):
        "\(folder) is in use by another process: stop it, or name another state folder"
      case .folder(let path, let problem): "\(path): \(problem)"
      }
    }
  }

  private let descriptor: Int32
  private let path: String

  public init(folder: String) throws(Failure) {
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
  public var isInPlace: Bool {
    var (held, found) = (stat(), stat())
    return fstat(descriptor, &held) == 0 && stat(path, &found) == 0 && held.st_ino == found.st_ino
      && held.st_dev == found.st_dev
  }

  /// Another process may hold the folder from now on.
  public func release() { flock(descriptor, LOCK_UN) }

  deinit {
    release()  // closed only, it would stay locked for as long as a child that is being started has its copy
    close(descriptor)
  }
}
