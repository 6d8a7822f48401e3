import Glibc

/// The limit of open files, and what of it clients of the ingest socket may use.
public enum DescriptorLimit {
  /// Kept for everything else: the store's files, uploads, the control socket and metrics, libdispatch, which ends the
  /// program where it gets none.
  public static let reserve = 320

  /// Raises the soft limit to the hard one. - Returns: the limit that is in force.
  public static func raise() -> Int {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return 1024 }
    if limit.rlim_cur < limit.rlim_max {
      var raised = limit
      raised.rlim_cur = limit.rlim_max
      if setrlimit(resource, &raised) == 0 { limit = raised }
    }
    return Int(clamping: limit.rlim_cur)
  }

  /// What `limit` leaves for connections of the ingest socket: all but the reserve, a quarter where it is small.
  public static func connectionsMax(of limit: Int) -> Int { max(1, limit - reserve, limit / 4) }
}
