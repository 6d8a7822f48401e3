import Glibc
import PrismBase

/// The other end of a connection.
public struct HTTPPeer: Sendable, Equatable {
  /// In numbers; empty for a Unix socket.
  public var address: String
  /// On this machine: 127.0.0.0/8, ::1, or a Unix socket.
  public var isLocal: Bool

  public init(address: String, isLocal: Bool) {
    (self.address, self.isLocal) = (address, isLocal)
  }

  init(_ address: UnsafePointer<sockaddr>?) {
    guard let address else {
      self.init(address: "", isLocal: false)
      return
    }
    switch Int32(address.pointee.sa_family) {
    case AF_INET:
      self = address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { Self(ipv4: $0.pointee.sin_addr) }
    case AF_INET6:
      self = address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { Self(ipv6: $0.pointee.sin6_addr) }
    default:
      self.init(address: "", isLocal: Int32(address.pointee.sa_family) == AF_UNIX)
    }
  }

  private init(ipv4: in_addr) {
    self.init(address: Self.text(AF_INET, ipv4), isLocal: UInt32(bigEndian: ipv4.s_addr) >> 24 == 127)
  }

  private init(ipv6: in6_addr) {
    let text = Self.text(AF_INET6, ipv6)
    // An IPv4 peer of an IPv6 socket.
    let address = text.hasPrefix("::ffff:") && text.contains(".") ? String(text.dropFirst("::ffff:".count)) : text
    self.init(address: address, isLocal: text == "::1" || address != text && address.hasPrefix("127."))
  }

  /// - Parameter text: an address in numbers. - Returns: nil for any other text.
  init?(text: String) {
    guard HostAndPort.isIPv4(text) || HostAndPort.isIPv6(text) else { return nil }
    self.init(address: text, isLocal: HostAndPort.isLoopback(text))
  }

  private static func text<Address>(_ family: Int32, _ address: Address) -> String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let isWritten = withUnsafePointer(to: address) { inet_ntop(family, $0, &text, socklen_t(text.count)) != nil }
    return isWritten ? String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) : ""
  }
}
