import Glibc

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
