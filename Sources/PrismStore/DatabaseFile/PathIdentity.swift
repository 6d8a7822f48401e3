import CLinux

/// Tells whether the files that SQLite holds open are still the ones that their paths lead to. Two statx(2), some
/// microseconds: cheap enough for every commit.
struct PathIdentity {
  private struct Identity: Equatable {
    private var device: UInt64 = 0
    private var inode: UInt64 = 0

    init?(_ path: String) {
      guard prism_file_identity(path, &device, &inode) == 0 else { return nil }
    }
  }

  private let path: String
  private let logPath: String
  private let database: Identity?
  /// nil until the first commit made it.
  private var log: Identity?

  init(_ path: String) {
    (self.path, logPath) = (path, path + "-wal")
    database = Identity(path)
    log = Identity(logPath)
  }

  /// false: deleted or replaced by others; what is committed from now on would be gone with this process.
  mutating func isInPlace() -> Bool {
    if log == nil { log = Identity(logPath) }
    return Identity(path) == database && Identity(logPath) == log
  }
}
