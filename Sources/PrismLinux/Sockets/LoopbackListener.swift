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

/// A socket on loopback that listens over TCP, or takes datagrams over UDP. Its descriptor does not block, and is not passed to
/// children.
final class LoopbackListener: ConnectionListener {
  /// Asked for datagrams over UDP; the kernel gives at most `net.core.rmem_max`.
  private static let bufferBytes: Int32 = 4 << 20

  let descriptor: Int32
  let path: String
  /// Of an address with port 0, the one that the kernel chose.
  let port: UInt16

  /// - Parameter address: `ADDRESS:PORT`. - Throws: `inUse`, `system`.
  init(address: String, isDatagram: Bool = false) throws(SocketError) {
    do throws(HTTPServerError) {
      let socket = try ListeningSocket(address: address, isDatagram: isDatagram)
      (descriptor, path, port) = (socket.descriptor, address, socket.port)
    } catch {
      if case .cannotListen(_, let code) = error {
        throw code == EADDRINUSE ? .inUse(path: address) : .system("listen on", path: address, errno: code)
      }
      throw .system("listen on", path: address, errno: EINVAL)
    }
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    var bytes = Self.bufferBytes
    if isDatagram { setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &bytes, socklen_t(MemoryLayout<Int32>.size)) }
  }

  func accept(refuse: (Int32) -> Void) -> UnixListener.Accepted { .next(of: descriptor) }

  func close() { Glibc.close(descriptor) }
}
