import Glibc

/// The limit of open files, and what of it clients of the ingest socket may use.
public enum DescriptorLimit {
  /// Reserved for everything else: the store's files, uploads, the control socket, metrics, and libdispatch, which ends
  /// the program if it gets no descriptor. A larger limit leaves the uploads of a whole window to each of four namespaces.
  static func reserve(of limit: Int) -> Int { min(max(320, limit / 8), others + perUpload * 256) }

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

  /// The part of `limit` for connections of the ingest socket: all but the reserve, a quarter of a small one.
  public static func connectionsMax(of limit: Int) -> Int { max(1, limit - reserve(of: limit), limit / 4) }

  /// How many uploads `limit` has room for at once, beside the connections of clients: each has a socket, two while it
  /// connects, and its resolver's. The rest of the reserve is the store's, the control socket's and libdispatch's.
  public static func uploadsMax(of limit: Int) -> Int {
    let left = limit - min(connectionsMax(of: limit), configuredConnectionsMax)
    return min(1024, max(1, (left - others) / perUpload))
  }

  /// `ingest.maxConnections` can't be larger.
  private static let configuredConnectionsMax = 65_536
  private static let others = 112
  private static let perUpload = 6
}
