public import PrismBase

/// A server's limits. Every peer is held to misbehave: nothing here is without bound.
public struct HTTPServerOptions: Sendable {
  /// A longer body is answered with 413.
  public var bodyBytesMax = 1024 * 1024
  /// How much of a refused body is read and thrown away, so that its sender reads the answer instead of a reset
  /// connection. A longer one is answered at once and the connection closed.
  var skippedBytesMax: Int { 2 * bodyBytesMax + 64 * 1024 }
  /// All bodies that are held at one time; a request past it is answered with 503. Those of unproven senders have a quarter.
  public var bodiesBytesMax = 64 * 1024 * 1024
  /// All answers over 256 KiB that are not read yet, but for streams; an answer past it is 503.
  public var answersBytesMax = 16 * 1024 * 1024
  /// Query parameters that may be given several times; any other one is answered with 400 then.
  public var listParameters: Set<String> = []
  /// The memory of libmicrohttpd for one connection: limits the head of a request.
  public var headBytesMax = 32 * 1024
  /// The most connections at a time. Past it idle and unproven ones give way.
  public var connectionsMax = 1024
  /// Addresses of proxies: a request of theirs has the last address of `X-Forwarded-For` that is no such proxy.
  public var trustedProxies: [NetworkRange] = []
  /// Called, on any thread, when a connection is closed for others or for its slow body, with an address that caused it.
  public var onCrowded: (@Sendable (CrowdedReason, String) -> Void)?
  /// From a connection's begin, or the answer before, to the end of the next request's head.
  public var headTimeout: Duration = .seconds(30)
  /// From the end of the head to the end of the body, and from the answer to its last byte: beside a second for each 8 KiB.
  public var bodyTimeout: Duration = .seconds(120)
  /// The time that a stop gives requests in flight; then their connections are closed.
  public var stopTimeout: Duration = .seconds(5)
  /// nil: plain HTTP.
  public var tls: HTTPServerTLS?

  public init() {}

  /// The slowest peer whose large body comes, or goes, whole: bytes a second. Senders give theirs half of this time.
  private static let bytesPerSecondMin = 8192

  /// From the end of a head to the end of its body.
  /// - Parameter bytes: as announced; nil: it comes in chunks.
  func bodyTime(bytes: Int?) -> Duration {
    bodyTimeout + .seconds(min(bytes ?? 0, bodyBytesMax) / Self.bytesPerSecondMin)
  }

  /// From an answer to its last byte.
  func answerTime(of response: HTTPResponse) -> Duration {
    bodyTimeout + .seconds((response.stream?.byteCount ?? 0) / Self.bytesPerSecondMin)
  }
}

/// The server's identity, TLS 1.2 or later.
public struct HTTPServerTLS: Sendable {
  /// PEM: the certificate, followed by those of its chain.
  public var certificate: [UInt8]
  /// PEM, not encrypted.
  public var key: [UInt8]
  /// PEM. Given: a client must show a certificate that is signed by one of these; else it is answered with 401.
  public var clientAuthorities: [UInt8]?

  public init(certificate: [UInt8], key: [UInt8], clientAuthorities: [UInt8]? = nil) {
    (self.certificate, self.key, self.clientAuthorities) = (certificate, key, clientAuthorities)
  }
}

/// The decision about a request whose head has been read, before its body.
public enum HTTPAdmission: Sendable {
  /// Read the body, then call the handler.
  /// - Parameter isProven: the head proves its sender, so its connection and its body do not give way to others.
  case take(isProven: Bool = false)
  /// The handler is not called. A body that is short is skipped, and the connection goes on. Otherwise the answer goes out at
  /// once, and the connection is closed.
  case refuse(HTTPResponse)
}
