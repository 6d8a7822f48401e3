import Glibc

/// The users and groups of this system. Blocks: they may come from a directory service.
public enum SystemAccounts {
  /// - Parameter name: a name, or a number, which is taken as it is.
  /// - Returns: nil if there is no such user.
  public static func userID(_ name: String) -> UInt32? {
    if let number = UInt32(name) { return number }
    return lookup { buffer, count in
      var entry = passwd()
      var found: UnsafeMutablePointer<passwd>?
      let code = getpwnam_r(name, &entry, buffer, count, &found)
      return (code, found == nil ? nil : entry.pw_uid)
    }
  }

  /// - Parameter name: a name, or a number, which is taken as it is.
  /// - Returns: nil if there is no such group, or it cannot be looked up.
  public static func groupID(_ name: String) -> UInt32? {
    if let number = UInt32(name) { return number }
    return lookup { buffer, count in
      var entry = group()
      var found: UnsafeMutablePointer<group>?
      let code = getgrnam_r(name, &entry, buffer, count, &found)
      return (code, found == nil ? nil : entry.gr_gid)
    }
  }

  /// The user's group and its supplementary ones. - Returns: empty if there is no such user.
  public static func groupIDs(ofUser userID: UInt32) -> Set<UInt32> {
    var groups: [UInt32] = []
    _ = lookup { buffer, count in
      var entry = passwd()
      var found: UnsafeMutablePointer<passwd>?
      let code = getpwuid_r(userID, &entry, buffer, count, &found)
      if found != nil { groups = groupIDs(named: entry.pw_name, with: entry.pw_gid) }
      return (code, nil)
    }
    return Set(groups)
  }

  private static func groupIDs(named name: UnsafePointer<CChar>, with first: UInt32) -> [UInt32] {
    var count: Int32 = 64
    var groups = [UInt32](repeating: 0, count: Int(count))
    if getgrouplist(name, first, &groups, &count) < 0 {
      groups = [UInt32](repeating: 0, count: Int(max(count, 1)))
      guard getgrouplist(name, first, &groups, &count) >= 0 else { return [first] }
    }
    return Array(groups.prefix(Int(count)))
  }

  /// With a buffer that grows until the entry fits: a group's lists all its members.
  private static func lookup(_ ask: (UnsafeMutablePointer<CChar>, Int) -> (code: Int32, id: UInt32?)) -> UInt32? {
    var size = 4096
    while size <= 4_194_304 {
      let buffer = UnsafeMutablePointer<CChar>.allocate(capacity: size)
      defer { buffer.deallocate() }
      let (code, id) = ask(buffer, size)
      if code != ERANGE { return id }
      size *= 4
    }
    return nil
  }
}
