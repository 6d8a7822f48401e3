import Glibc
import PrismProtocol

/// The base address of a service: scheme, host, port and path, and nothing that would leak or be ambiguous.
struct HTTPAddress: Sendable, Equatable {
  /// Without a trailing slash.
  let text: String
  let isSecure: Bool
  /// In lower case, an IPv6 address without its brackets.
  let host: String

  /// nil for another scheme, no host, a user, a query, a fragment, white space, or a port that is none.
  init?(_ text: String) {
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

  var isLoopback: Bool {
    if host == "localhost" || host == "::1" { return true }
    var address = in_addr()
    return inet_pton(AF_INET, host, &address) == 1 && UInt32(bigEndian: address.s_addr) >> 24 == 127
  }

  private static func host(of authority: String) -> String? {
    guard let (host, port) = HostAndPort.split(authority) else { return nil }
    if let port, HostAndPort.port(port) == nil { return nil }
    if authority.hasPrefix("[") { return HostAndPort.isIPv6(host) ? host.lowercased() : nil }
    let isName = host.utf8.allSatisfy { $0.isASCIIAlphanumeric || $0 == 0x2D || $0 == 0x2E || $0 == 0x5F }
    return isName && !host.isEmpty && !host.hasPrefix(".") ? host.lowercased() : nil
  }
}

/// A numeric address and a port to listen on.
struct ListenAddress: Sendable, Equatable {
  /// `127.0.0.1:9464` or `[::1]:9464`
  let text: String

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

enum HostAndPort {
  /// `host`, `host:port`, `[address]` or `[address]:port`.
  static func split(_ text: String) -> (host: String, port: String?)? {
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { return nil }
      let rest = text[text.index(after: end)...]
      guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
      let host = String(text[text.index(after: text.startIndex)..<end])
      return (host, rest.isEmpty ? nil : String(rest.dropFirst()))
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2 else { return nil }
    return (String(parts[0]), parts.count == 2 ? String(parts[1]) : nil)
  }

  static func port(_ text: String) -> Int? {
    guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return Int(text).flatMap { (1...65_535).contains($0) ? $0 : nil }
  }

  static func isIPv4(_ text: String) -> Bool {
    var address = in_addr()
    return inet_pton(AF_INET, text, &address) == 1
  }

  static func isIPv6(_ text: String) -> Bool {
    var address = in6_addr()
    return inet_pton(AF_INET6, text, &address) == 1
  }
}
