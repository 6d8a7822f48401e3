import CLinux
import Glibc
import PrismBase
import Synchronization

/// A listening Unix stream socket: bound by us, or inherited from the service manager.
///
/// Its descriptor does not block, and isn't passed to children. Its server watches `descriptor` for reading and calls
/// `accept` until it returns `nothing`.
public final class UnixListener: Sendable {
  /// The result of `accept`.
  public enum Accepted: Sendable, Equatable {
    /// A connection: close-on-exec, non-blocking, owned by the caller.
    case connection(Int32)
    /// No connection is waiting.
    case nothing
    /// No descriptor was left: the caller was accepted with the spare one, handed to `refuse`, and closed.
    case refused
    /// No descriptor or memory is left, not even the spare: stop watching for a while, or the watching would spin.
    case exhausted(errno: Int32)

    static func next(of listener: Int32) -> Accepted {
      while true {
        let connection = prism_accept(listener)
        if connection >= 0 { return .connection(connection) }
        switch errno {
        // That client is gone or barred, or its network is; the next may be fine.
        case EINTR, ECONNABORTED, EPROTO, EPERM, ENETDOWN, EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, ENOPROTOOPT: continue
        case EAGAIN: return .nothing
        default: return .exhausted(errno: errno)
        }
      }
    }
  }

  /// The listening socket.
  public let descriptor: Int32
  /// The path of its file.
  public let path: String

  /// The file, so that we never touch one that somebody else has put there since.
  private let identity: FileIdentity?
  private let isInherited: Bool
  /// Opened on `/dev/null` and given up to accept, and refuse politely, when there are no descriptors left.
  private let spare: Mutex<Int32>

  private init(descriptor: Int32, path: String, identity: FileIdentity?, isInherited: Bool) {
    (self.descriptor, self.path, self.identity, self.isInherited) = (descriptor, path, identity, isInherited)
    spare = Mutex(open("/dev/null", O_RDONLY | O_CLOEXEC))
  }

  /// Binds and listens. A socket file without a listener is replaced; any other file there is left alone. A socket for datagrams
  /// is read by its server, and `accept` is of no use.
  ///
  /// There is no moment in which the socket is there with wider rights than `mode`.
  /// - Parameter group: the file's group by name or number; nil leaves the process's own.
  /// - Throws: `inUse` when somebody answers at `path`; the other cases of `SocketError` as they say.
  public convenience init(
    path: String, mode: UInt32, group: String? = nil, isDatagram: Bool = false
  ) throws(SocketError) {
    let address = try UnixAddress.checked(path)
    try Self.removeStale(address)
    let groupID = try Self.groupID(of: group, path: path)
    let descriptor = isDatagram ? prism_unix_datagram_socket() : prism_unix_socket()
    guard descriptor >= 0 else { throw .system("socket", path: path, errno: errno) }
    do throws(SocketError) {
      let identity = try Self.bind(descriptor, address, mode: mode, groupID: groupID, listens: !isDatagram)
      self.init(descriptor: descriptor, path: path, identity: identity, isInherited: false)
    } catch {
      Glibc.close(descriptor)
      throw error
    }
  }

  /// Takes over a socket that the service manager listens on; closing leaves its file where it is.
  /// - Throws: `notListening` when the descriptor isn't a listening Unix stream socket.
  public convenience init(inherited descriptor: Int32) throws(SocketError) {
    guard Self.option(SO_ACCEPTCONN, of: descriptor) == 1, Self.option(SO_DOMAIN, of: descriptor) == AF_UNIX else {
      throw .notListening(descriptor: descriptor)
    }
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    let path = UnixAddress.localPath(of: descriptor) ?? ""
    self.init(descriptor: descriptor, path: path, identity: FileIdentity(path: path), isInherited: true)
  }

  /// - Parameter refuse: may write one short answer to a connection there is no descriptor for; it must not close it.
  public func accept(refuse: (Int32) -> Void) -> Accepted {
    let next = Accepted.next(of: descriptor)
    guard case .exhausted(let code) = next, code == EMFILE || code == ENFILE else { return next }
    return refuseWithSpare(refuse, shortage: code)
  }

  private func refuseWithSpare(_ refuse: (Int32) -> Void, shortage: Int32) -> Accepted {
    spare.withLock { spare in
      guard spare >= 0 else {
        spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
        return .exhausted(errno: shortage)
      }
      Glibc.close(spare)
      let connection = prism_accept(descriptor)
      if connection >= 0 {
        refuse(connection)
        Glibc.close(connection)
      }
      spare = open("/dev/null", O_RDONLY | O_CLOEXEC)
      return connection >= 0 ? .refused : .exhausted(errno: shortage)
    }
  }

  /// After a reload, and for a socket that the service manager bound: a unit gives all its sockets the same rights.
  /// - Returns: false where a socket of the service manager's keeps the rights that its unit gave it, because a sandbox
  ///   forbids us to change them.
  /// - Throws: `unknownGroup`, `system`; then the rights are as they were, or those of one of the two.
  @discardableResult
  public func update(mode: UInt32, group: String?) throws(SocketError) -> Bool {
    let groupID = try Self.groupID(of: group, path: path)
    guard let identity, identity == FileIdentity(path: path) else { return true }
    do throws(SocketError) { try Self.setRights(path: path, mode: mode, groupID: groupID) } catch {
      if isInherited { return false }
      throw error
    }
    return true
  }

  /// Closes the descriptor; call it once, after the last watch of it has ended. Removes the file if we bound it and it
  /// is still ours.
  public func close() {
    if !isInherited, let identity, identity == FileIdentity(path: path) { unlink(path) }
    Glibc.close(descriptor)
    spare.withLock { spare in
      if spare >= 0 { Glibc.close(spare) }
      spare = -1
    }
  }

  /// Removes a socket file at `address` if connecting shows that no program listens there.
  private static func removeStale(_ address: UnixAddress) throws(SocketError) {
    var status = stat()
    guard lstat(address.path, &status) == 0 else {
      if errno == ENOENT { return }
      throw .system("look at", path: address.path, errno: errno)
    }
    guard status.st_mode & S_IFMT == S_IFSOCK else { throw .notASocket(path: address.path) }
    let probe = prism_unix_socket()
    guard probe >= 0 else { throw .system("socket", path: address.path, errno: errno) }
    defer { Glibc.close(probe) }
    let answer = address.withPointer { connect(probe, $0, $1) == 0 ? 0 : errno }
    switch answer {
    case ECONNREFUSED:
      guard unlink(address.path) == 0 || errno == ENOENT else {
        throw .system("remove the stale socket", path: address.path, errno: errno)
      }
    case ENOENT: return
    case 0, EAGAIN, EPROTOTYPE: throw .inUse(path: address.path)
    default: throw .system("connect to", path: address.path, errno: answer)
    }
  }

  private static func bind(
    _ descriptor: Int32, _ address: UnixAddress, mode: UInt32, groupID: gid_t?, listens: Bool
  ) throws(SocketError) -> FileIdentity? {
    // The file takes its mode from the socket's own inode: closed to all until owner and group are right.
    fchmod(descriptor, 0)
    guard address.withPointer({ Glibc.bind(descriptor, $0, $1) }) == 0 else {
      if errno == EADDRINUSE { throw .inUse(path: address.path) }
      throw .system("bind", path: address.path, errno: errno)
    }
    let identity = FileIdentity(path: address.path)
    do throws(SocketError) {
      guard !listens || listen(descriptor, SOMAXCONN) == 0 else {
        throw .system("listen on", path: address.path, errno: errno)
      }
      try setRights(path: address.path, mode: mode, groupID: groupID)
    } catch {
      unlink(address.path)
      throw error
    }
    return identity
  }

  private static func setRights(path: String, mode: UInt32, groupID: gid_t?) throws(SocketError) {
    // A sandbox may forbid to change a group, even to the same.
    var status = stat()
    let wanted = groupID ?? getegid()
    guard lstat(path, &status) == 0 && status.st_gid == wanted || chown(path, uid_t.max, wanted) == 0 else {
      throw .system("change the group of", path: path, errno: errno)
    }
    guard chmod(path, mode) == 0 else { throw .system("change the mode of", path: path, errno: errno) }
  }

  static func groupID(of name: String?, path: String) throws(SocketError) -> gid_t? {
    guard let name else { return nil }
    guard let id = SystemAccounts.groupID(name) else { throw .unknownGroup(name, path: path) }
    return id
  }

  private static func option(_ name: Int32, of descriptor: Int32) -> Int32? {
    var value: Int32 = 0
    var size = socklen_t(MemoryLayout<Int32>.size)
    return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
  }
}

extension UnixAddress {
  /// The address of `path`. - Throws: `pathUnusable`.
  static func checked(_ path: String) throws(SocketError) -> UnixAddress {
    guard let address = UnixAddress(path: path) else { throw .pathUnusable(path: path, bytesMax: pathBytesMax) }
    return address
  }
}

/// Sockets that the service manager listens on for us (sd_listen_fds(3)), so that a restart refuses no client.
public enum SocketActivation {
  /// The inherited listeners. The path that a listener is bound to identifies it, because the names of `LISTEN_FDNAMES`
  /// are the same for all sockets of a unit.
  ///
  /// Takes the variables out of the environment, so that no child believes they are its own. Call it once, before there
  /// are other threads.
  /// - Throws: `notListening` when a passed descriptor is something else.
  public static func takeListeners() throws(SocketError) -> [UnixListener] {
    let descriptors = takeDescriptors()
    var listeners: [UnixListener] = []
    for descriptor in descriptors { listeners.append(try UnixListener(inherited: descriptor)) }
    return listeners
  }

  static func takeDescriptors() -> Range<Int32> {
    let value = { (name: String) in getenv(name).flatMap { Int32(String(cString: $0)) } }
    let (process, count) = (value("LISTEN_PID"), value("LISTEN_FDS"))
    for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"] { unsetenv(name) }
    let first: Int32 = 3  // SD_LISTEN_FDS_START
    guard process == getpid(), let count, (1...1024).contains(count) else { return first..<first }
    for descriptor in first..<first + count { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
    return first..<first + count
  }
}
