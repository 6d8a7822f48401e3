import CJoinedWrites

/// A virtual file system that joins SQLite's writes to its log: a commit costs the kernel a third less
/// (`Sources/CJoinedWrites`). Only for `synchronous = FULL`: without a sync before a commit is visible, what is joined
/// would be lost with the process.
public enum JoinedWrites {
  /// - Parameter base: a VFS that was registered under this name; nil: the system's.
  /// - Returns: the name to open a connection with; `base` if there is no memory for it.
  public static func vfs(over base: String?) -> String? {
    prism_joined_writes_vfs(base).map { String(cString: $0) } ?? base
  }
}
