import Glibc

extension ListeningSocket {
  /// Listens on a Unix socket that only the owner of the process can open (mode 0600). A socket that an earlier process
  /// left at the path is replaced. The file stays when the socket is closed.
  public init(unixPath path: String) throws(HTTPServerError) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let capacity = MemoryLayout.size(ofValue: address.sun_path)
    guard !path.isEmpty, path.utf8.count < capacity else { throw .cannotListen(address: path, errno: ENAMETOOLONG) }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .cannotListen(address: path, errno: errno) }
    unlink(path)
    let isBound = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    // Until it listens nobody gets in, whatever the mode was before.
    guard isBound == 0, chmod(path, 0o600) == 0, listen(descriptor, 64) == 0 else {
      let code = errno
      close(descriptor)
      throw .cannotListen(address: path, errno: code)
    }
    self.init(adopting: descriptor)
  }
}
