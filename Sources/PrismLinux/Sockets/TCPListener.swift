import CLinux
import Glibc
import PrismHTTP

/// A listening TCP socket on loopback. Its descriptor does not block, and is not passed to children.
final class TCPListener: ConnectionListener {
  let descriptor: Int32
  let path: String
  /// Of an address with port 0, the one that the kernel chose.
  let port: UInt16

  /// - Parameter address: `ADDRESS:PORT`. - Throws: `inUse`, `system`.
  init(address: String) throws(SocketError) {
    do throws(HTTPServerError) {
      let socket = try ListeningSocket(address: address)
      (descriptor, path, port) = (socket.descriptor, address, socket.port)
    } catch {
      if case .cannotListen(_, let code) = error {
        throw code == EADDRINUSE ? .inUse(path: address) : .system("listen on", path: address, errno: code)
      }
      throw .system("listen on", path: address, errno: EINVAL)
    }
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }

  func accept(refuse: (Int32) -> Void) -> UnixListener.Accepted {
    while true {
      let connection = prism_accept(descriptor)
      if connection >= 0 { return .connection(connection) }
      switch errno {
      case EINTR, ECONNABORTED, EPROTO, EPERM, ENETDOWN, EHOSTDOWN, EHOSTUNREACH, ENETUNREACH, ENOPROTOOPT: continue
      case EAGAIN: return .nothing
      default: return .exhausted(errno: errno)
      }
    }
  }

  func close() { Glibc.close(descriptor) }
}
