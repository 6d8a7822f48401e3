import Glibc
import PrismBase

/// A request as its handler sees it: read to its end, within the server's limits.
public struct HTTPRequest: Sendable {
  /// The methods that the server knows; other methods were answered with 405. HEAD is `get`, and its answer has no
  /// body.
  public enum Method: String, Sendable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case delete = "DELETE"
    case options = "OPTIONS"
  }

  /// The method.
  public var method: Method
  /// Percent-decoded, without the query.
  public var path: String
  /// Percent-decoded, in their order; a parameter without `=` has an empty value.
  public var query: [(name: String, value: String)]
  /// Names in lower case.
  public var headers: [(name: String, value: String)]
  /// The whole body.
  public var body: [UInt8] = []
  /// The other end of the connection.
  public var peer: HTTPPeer
  /// A trusted proxy says that the request came over TLS to it.
  public var isForwardedSecurely = false
  /// When its head had come, by the server's `uptime` clock: the body may have taken minutes. nil if a test made it.
  public var headTime: Duration?

  /// Called when the request proved its sender: its connection does not give way to strangers' any more.
  var onProof: (@Sendable () -> Void)?

  /// The request proved its sender, by a token or by a packet of a known key.
  public func prove() { onProof?() }

  /// For tests of handlers; the server makes its own.
  public init(
    method: Method, path: String, query: [(name: String, value: String)] = [],
    headers: [(name: String, value: String)] = [], body: [UInt8] = [], peer: HTTPPeer
  ) {
    (self.method, self.path, self.query, self.headers) = (method, path, query, headers)
    (self.body, self.peer) = (body, peer)
  }

  /// The first header of this name (any case).
  public func header(_ name: String) -> String? {
    headers(name).first
  }

  /// The values of all headers of this name (any case).
  public func headers(_ name: String) -> [String] {
    let name = name.lowercased()
    return headers.filter { $0.name == name }.map(\.value)
  }

  /// The first query parameter of this name (this case).
  public func parameter(_ name: String) -> String? {
    query.first { $0.name == name }?.value
  }
}

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
    let family = address.map { Int32($0.pointee.sa_family) }
    let bytes = family == AF_INET ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_in6>.size
    var text = [CChar](repeating: 0, count: 64)
    guard let address, family == AF_INET || family == AF_INET6,
      getnameinfo(address, socklen_t(bytes), &text, socklen_t(text.count), nil, 0, NI_NUMERICHOST) == 0
    else {
      self.init(address: "", isLocal: family == AF_UNIX)
      return
    }
    // Without the link of a local address.
    let whole = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self).prefix {
      $0 != "%"
    }
    // An IPv4 peer of an IPv6 socket.
    let own = whole.hasPrefix("::ffff:") && whole.contains(".") ? whole.dropFirst("::ffff:".count) : whole
    self.init(address: String(own), isLocal: own == "::1" || own.hasPrefix("127."))
  }

  /// A peer that a proxy names. It is never of this machine: its request came over the proxy.
  /// - Parameter forwarded: an address in numbers; some proxies add a port. - Returns: nil for any other text.
  init?(forwarded text: String) {
    let host = HostAndPort.isIPv6(text) ? text : HostAndPort.split(text)?.host ?? text
    guard let address = NetworkRange(host)?.description, !host.contains("/") else { return nil }
    self.init(address: address, isLocal: false)
  }
}
