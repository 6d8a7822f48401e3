import Glibc
import PrismHTTP

/// A listening socket of a server, of any family.
protocol ConnectionListener: Sendable {
  /// Watched for reading by the server.
  var descriptor: Int32 { get }
  /// The address as the configuration has it.
  var path: String { get }
  /// Takes the next connection; `refuse` may write one short answer to a connection there is no descriptor for.
  func accept(refuse: (Int32) -> Void) -> UnixListener.Accepted
  /// Closes it; call it once, after its watch has ended.
  func close()
}

extension UnixListener: ConnectionListener {}

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

  func accept(refuse: (Int32) -> Void) -> UnixListener.Accepted { .next(of: descriptor) }

  func close() { Glibc.close(descriptor) }
}
