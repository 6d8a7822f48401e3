import Glibc

/// The machine's groups. Looking one up may read files or ask a directory server: not for the hot path.
enum Accounts {
  /// nil when there is no such group, or it can't be looked up.
  static func groupID(of name: String) -> gid_t? {
    var size = 1024
    while size <= 1 << 20 {
      var buffer = [CChar](repeating: 0, count: size)
      var entry = group()
      var found: UnsafeMutablePointer<group>?
      let failed = getgrnam_r(name, &entry, &buffer, size, &found)
      if failed != ERANGE { return found == nil ? nil : entry.gr_gid }
      size *= 4  // a group of many members
    }
    return nil
  }
}
