import Glibc
import PrismBase

extension ListeningSocket {
  /// Listens on a Unix socket that only the owner of the process can open (mode 0600). A socket that an earlier process
  /// left at the path is replaced. The file stays when the socket is closed.
  public init(unixPath path: String) throws(HTTPServerError) {
    guard let address = UnixAddress(path: path) else { throw .cannotListen(address: path, errno: ENAMETOOLONG) }
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .cannotListen(address: path, errno: errno) }
    unlink(path)
    let isBound = address.withPointer { bind(descriptor, $0, $1) }
    // Until it listens no client gets in, under any mode.
    guard isBound == 0, chmod(path, 0o600) == 0, listen(descriptor, 64) == 0 else {
      let code = errno
      close(descriptor)
      throw .cannotListen(address: path, errno: code)
    }
    self.init(adopting: descriptor)
  }
}
