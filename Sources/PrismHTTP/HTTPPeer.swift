import Glibc
import PrismBase

/// The other end of a connection.
public struct HTTPPeer: Sendable, Equatable {
  /// In numbers; empty for a Unix socket.
  public var address: String
  /// On this machine: 127.0.0.0/8, ::1, or a Unix socket.
  public var isLocal: Bool
  /// Its share of what senders share: equal for the addresses of one host.
  public var network: String { NetworkRange.ofOneSender(address) }

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

  /// A peer that a proxy names. It is never of this machine: its request came over the proxy.
  /// - Parameter forwarded: an address in numbers; some proxies add a port. - Returns: nil for any other text.
  init?(forwarded text: String) {
    let host = HostAndPort.isIPv6(text) ? text : HostAndPort.split(text)?.host ?? text
    guard let address = NetworkRange(host)?.description, !host.contains("/") else { return nil }
    self.init(address: address, isLocal: false)
  }

  private static func text<Address>(_ family: Int32, _ address: Address) -> String {
    var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    let isWritten = withUnsafePointer(to: address) { inet_ntop(family, $0, &text, socklen_t(text.count)) != nil }
    return isWritten ? String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) : ""
  }
}
