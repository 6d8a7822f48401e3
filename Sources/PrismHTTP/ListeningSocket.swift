import CMicroHTTPD
import Glibc
import PrismBase

/// A socket that listens, or takes datagrams. The server that it is given to closes it.
public struct ListeningSocket: Sendable {
  /// The listening socket.
  public let descriptor: Int32

  /// Takes over a socket that listens already (socket activation).
  public init(adopting descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// - Parameter address: `ADDRESS:PORT` in numbers, `[ADDRESS]:PORT` for IPv6, or `localhost:PORT`; port 0 takes any
  ///   that is free.
  /// - Parameter isDatagram: UDP, else TCP.
  public init(address: String, isDatagram: Bool = false) throws(HTTPServerError) {
    let (host, port) = try Self.split(address)
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE | (host == "localhost" ? 0 : AI_NUMERICHOST)
    let kind = isDatagram ? SOCK_DGRAM : SOCK_STREAM
    hints.ai_socktype = Int32(kind.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, port, &hints, &list) == 0, let first = list else { throw .badAddress(address) }
    defer { freeaddrinfo(list) }
    let descriptor = Glibc.socket(first.pointee.ai_family, Int32(kind.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .cannotListen(address: address, errno: errno) }
    var on: Int32 = 1
    // For UDP it would let any program bind the same address, and take what comes.
    if !isDatagram { setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size)) }
    let isBound = bind(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen) == 0
    guard isBound, isDatagram || listen(descriptor, 512) == 0 else {
      let code = errno
      close(descriptor)
      throw .cannotListen(address: address, errno: code)
    }
    self.descriptor = descriptor
  }

  /// 0 when it is no socket of IP.
  public var port: UInt16 {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &storage) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
    }
    guard result == 0, [AF_INET, AF_INET6].contains(Int32(storage.ss_family)) else { return 0 }
    // Addresses of both families have it at the same place.
    return withUnsafeBytes(of: storage) { $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self).bigEndian }
  }

  private static func split(_ address: String) throws(HTTPServerError) -> (host: String, port: String) {
    guard let (host, port) = HostAndPort.split(address), let port, UInt16(port) != nil, !host.isEmpty,
      address.hasPrefix("[") == host.contains(":")
    else { throw .badAddress(address) }
    return (host, port)
  }

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

/// Why a server does not come up.
public enum HTTPServerError: Error, Equatable, CustomStringConvertible {
  case badAddress(String)
  case cannotListen(address: String, errno: Int32)
  /// libmicrohttpd gives no reason; with TLS it nearly always is the identity.
  case cannotStart(withTLS: Bool)

  public var description: String {
    switch self {
    case .badAddress(let text):
      "\(text): is not an address to listen on; write ADDRESS:PORT, [ADDRESS]:PORT for IPv6, port 0 for any"
    case .cannotListen(let address, EADDRINUSE):
      "\(address): another program listens there; stop it, or choose another port"
    case .cannotListen(let address, EACCES):
      "\(address): not permitted; ports below 1024 need CAP_NET_BIND_SERVICE"
    case .cannotListen(let address, EADDRNOTAVAIL):
      "\(address): this machine has no such address"
    case .cannotListen(let address, let code):
      "\(address): cannot listen: \(String(cString: strerror(code)))"
    case .cannotStart(withTLS: true):
      "the HTTPS server does not start: check that certificate and key are PEM files and belong together"
    case .cannotStart(withTLS: false):
      "the HTTP server does not start: out of memory, threads or file descriptors"
    }
  }
}
