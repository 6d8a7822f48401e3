import CMicroHTTPD
import Glibc
import PrismBase

/// A TCP socket that listens. The server that it is given to closes it.
public struct ListeningSocket: Sendable {
  /// The listening socket.
  public let descriptor: Int32

  /// Takes over a socket that listens already (socket activation).
  public init(adopting descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// - Parameter address: `ADDRESS:PORT` in numbers, `[ADDRESS]:PORT` for IPv6, or `localhost:PORT`; port 0 takes any
  ///   that is free.
  public init(address: String) throws(HTTPServerError) {
    let (host, port) = try Self.split(address)
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE | (host == "localhost" ? 0 : AI_NUMERICHOST)
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(host, port, &hints, &list) == 0, let first = list else { throw .badAddress(address) }
    defer { freeaddrinfo(list) }
    let descriptor = Glibc.socket(first.pointee.ai_family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .cannotListen(address: address, errno: errno) }
    var on: Int32 = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    guard bind(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen) == 0, listen(descriptor, 512) == 0 else {
      let code = errno
      close(descriptor)
      throw .cannotListen(address: address, errno: code)
    }
    self.descriptor = descriptor
  }

  /// 0 when it is no TCP socket.
  public var port: UInt16 {
    withLocalAddress { address, family in
      switch family {
      case AF_INET: address.loadUnaligned(as: sockaddr_in.self).sin_port.bigEndian
      case AF_INET6: address.loadUnaligned(as: sockaddr_in6.self).sin6_port.bigEndian
      default: 0
      }
    }
  }

  private func withLocalAddress(_ body: (UnsafeRawPointer, Int32) -> UInt16) -> UInt16 {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    return withUnsafeMutablePointer(to: &storage) { pointer in
      let isKnown = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        getsockname(descriptor, $0, &length) == 0
      }
      return isKnown ? body(UnsafeRawPointer(pointer), Int32(pointer.pointee.ss_family)) : 0
    }
  }

  private static func split(_ address: String) throws(HTTPServerError) -> (host: String, port: String) {
    guard let (host, port) = HostAndPort.split(address), let port, UInt16(port) != nil, !host.isEmpty,
      address.hasPrefix("[") == host.contains(":")
    else { throw .badAddress(address) }
    return (host, port)
  }
}
