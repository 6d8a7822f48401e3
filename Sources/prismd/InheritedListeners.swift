import PrismBase
import PrismLinux

/// The sockets that systemd passed to the daemon. A socket that it did not pass is opened by the daemon itself.
struct InheritedListeners {
  private let listeners: [UnixListener]
  private let log: Logger

  init(log: Logger) throws(SocketError) { (listeners, self.log) = (try SocketActivation.takeListeners(), log) }

  /// - Parameter mode: the rights of the socket's file.
  func listener(_ path: String, mode: UInt32, group: String?) throws(SocketError) -> UnixListener {
    guard let listener = listeners.first(where: { $0.path == path }) else {
      return try UnixListener(path: path, mode: mode, group: group)
    }
    if !(try listener.update(mode: mode, group: group)) {
      log.warning("the socket's group can't be set; name it in prismd.socket, SocketGroup=", ["path": path])
    }
    return listener
  }
}
