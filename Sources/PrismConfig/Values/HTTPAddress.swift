import PrismBase
import PrismProtocol

/// The base address of a service: scheme, host, port and path, and nothing that would leak or be ambiguous.
public struct HTTPAddress: Sendable, Equatable {
  /// Without a trailing slash.
  public let text: String
  let isSecure: Bool
  /// In lower case, an IPv6 address without its brackets.
  let host: String

  /// nil for another scheme, a missing host, a user, a query, a fragment, white space, or an invalid port.
  public init?(_ text: String) {
    guard text.isVisibleASCII, text.utf8.count <= 2048, let scheme = text.firstRange(of: "://") else { return nil }
    switch text[..<scheme.lowerBound].lowercased() {
    case "https": isSecure = true
    case "http": isSecure = false
    default: return nil
    }
    let rest = text[scheme.upperBound...]
    guard !rest.contains(where: { "?#@\\\"<>{}|^`".contains($0) }) else { return nil }
    guard let host = Self.host(of: String(rest.prefix { $0 != "/" })) else { return nil }
    self.host = host
    var trimmed = text[...]
    while trimmed.hasSuffix("/") { trimmed = trimmed.dropLast() }
    self.text = String(trimmed)
  }

  /// A secret may go there: over TLS, or to this machine.
  public var isPrivate: Bool { isSecure || HostAndPort.isLoopback(host) }

  private static func host(of authority: String) -> String? {
    guard let (host, port) = HostAndPort.split(authority) else { return nil }
    if let port, HostAndPort.port(port) == nil { return nil }
    if authority.hasPrefix("[") { return HostAndPort.isIPv6(host) ? host.lowercased() : nil }
    let isName = host.utf8.allSatisfy {
      $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_")
    }
    return isName && !host.isEmpty && !host.hasPrefix(".") ? host.lowercased() : nil
  }
}

/// A numeric address and a port to listen on.
struct ListenAddress: Sendable, Equatable {
  /// `127.0.0.1:9464` or `[::1]:9464`
  let text: String

  var isLoopback: Bool { HostAndPort.split(text).map { HostAndPort.isLoopback($0.host) } ?? false }

  init?(_ text: String) {
    if let port = HostAndPort.port(text.hasPrefix(":") ? String(text.dropFirst()) : text) {
      self.text = "127.0.0.1:\(port)"
      return
    }
    guard let (host, port) = HostAndPort.split(text), let port, HostAndPort.port(port) != nil else { return nil }
    let address = host == "localhost" ? "127.0.0.1" : host
    guard text.hasPrefix("[") ? HostAndPort.isIPv6(address) : HostAndPort.isIPv4(address) else { return nil }
    self.text = text.hasPrefix("[") ? text : "\(address):\(port)"
  }
}
