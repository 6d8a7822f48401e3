public import PrismBase
public import PrismConfig
import PrismProtocol

// The engine's needs from outside. The edge (`PrismLinux`) implements them; tests script them.

/// Delivers one request over HTTP.
public protocol Transport: Sendable {
  /// Reports the end of a request. It never throws, so that no caller can forget a case; cancelling the task aborts the
  /// transfer and answers `failure(.cancelled)`. Redirects are not followed; TLS is verified.
  func post(_ request: TransferRequest) async -> PostAnswer
}

/// A request that carries a packet, a question, a probe, or asks for a document or a table of records.
public struct TransferRequest: Sendable {
  /// The method of the request.
  public enum Method: Sendable {
    case post
    /// Without a body, for an answer with one.
    case get
    /// Without a body, for an answer without one: whether anybody is there.
    case head
  }

  /// POST for a packet, GET for a question, HEAD for a probe.
  public var method = Method.post
  /// The whole address.
  public var url: String
  /// The headers in their order.
  public var headers: [(name: String, value: String)]
  /// The body; empty for a question and a probe.
  public var body: [UInt8]
  /// Certificates for the connection.
  public var tls = NamespaceConfiguration.TLS()
  /// The deadline for name resolution, connection and TLS.
  public var connectTimeout: Duration
  /// The whole POST, connecting included.
  public var timeout: Duration
  /// On a connection that carried no request before: its answer can be to this request only.
  public var needsNewConnection = false
  /// Bytes of the answer's body that are kept, where it goes into no file.
  public var answerBytesKept = 64 * 1024
  /// With a larger answer the transfer is aborted (`failure(.badResponse)`), before it is fetched if it says its size.
  public var answerBytesMax = 1024 * 1024

  public init(
    url: String, headers: [(name: String, value: String)], body: [UInt8], connectTimeout: Duration = .seconds(10),
    timeout: Duration
  ) {
    (self.url, self.headers, self.body) = (url, headers, body)
    (self.connectTimeout, self.timeout) = (connectTimeout, timeout)
  }

  /// GETs an answer of up to `answerBytesMax`, all of which is kept.
  public init(get url: String, headers: [(name: String, value: String)], timeout: Duration, answerBytesMax: Int) {
    self.init(url: url, headers: headers, body: [], timeout: timeout)
    (method, answerBytesKept, self.answerBytesMax) = (.get, answerBytesMax, answerBytesMax)
  }
}

extension HeldFile {
  /// The header that shows the token in this file.
  var authorization: (name: String, value: String) {
    ("Authorization", "Bearer \(String(decoding: content.bytes, as: UTF8.self))")
  }
}

extension NamespaceConfiguration {
  var authorization: [(name: String, value: String)] { token.map { [$0.authorization] } ?? [] }
}

/// The result of a request.
public struct PostAnswer: Sendable, Equatable {
  /// The answer, or why there is no answer.
  public enum Outcome: Sendable, Equatable {
    /// A whole answer came. Header names are in lower case; the body is cut at `answerBytesKept`.
    case response(status: Int, headers: [String: String], body: [UInt8])
    /// No whole answer came.
    case failure(Failure, detail: String)
  }

  /// Why no answer came; the raw value is a metric's label.
  public enum Failure: String, Sendable, CaseIterable {
    case resolve, connect, tls, timeout, reset, badResponse, cancelled, local
  }

  /// How surely an answer belongs to this request. A server, or a proxy on the way, may write to a connection that it
  /// keeps open. The next request then reads an answer that was not meant for it (RFC 9112, 9.2).
  public enum Origin: Sendable, Equatable, CaseIterable {
    /// The connection carried no request before.
    case newConnection
    /// The connection carried others before.
    case keptConnection
    /// As `keptConnection`, and the answer began before the request was sent whole.
    case beforeRequestEnd
  }

  /// The answer or the failure.
  public var outcome: Outcome
  /// The kind of connection on which the answer came.
  public var origin = Origin.newConnection
  /// A byte of the request may have reached the other side: the packet is frozen.
  public var mayHaveLeft: Bool
  /// On the wire as HTTP sees it: request and answer, headers included.
  public var bytesSent: Int, bytesReceived: Int
  /// The time from the request to the whole answer.
  public var duration: Duration
  /// The round trip of the connection when the answer came; nil if unknown.
  public var line: LineReading?

  public init(outcome: Outcome, mayHaveLeft: Bool, bytesSent: Int, bytesReceived: Int, duration: Duration) {
    (self.outcome, self.mayHaveLeft, self.duration) = (outcome, mayHaveLeft, duration)
    (self.bytesSent, self.bytesReceived) = (bytesSent, bytesReceived)
  }
}

/// A file in the state folder that is kept over restarts: the cached remote configuration, or the use of the keys.
public protocol KeptFile: Sendable {
  /// nil if there is no file.
  func read(bytesMax: Int) async throws(KeptFileFault) -> [UInt8]?
  /// Whole or not at all, through a power loss too.
  func write(_ bytes: [UInt8]) async throws(KeptFileFault)
  /// Moves what can't be used out of the way. - Returns: where to.
  func setAside() async throws(KeptFileFault) -> String
}

/// A kept file can't be read or written.
public struct KeptFileFault: Error, Sendable, Equatable, CustomStringConvertible {
  /// The file and its fault.
  public let description: String
  public init(_ description: String) { self.description = description }
}

/// The network, by the kernel's routes and the configuration's globs.
public struct NetworkStatus: Sendable, Equatable {
  /// `none`: there is no network.
  public enum Kind: String, Sendable, CaseIterable { case none, metered, unmetered }
  /// The kind of the network.
  public var kind: Kind
  /// Of the default route; nil without one.
  public var interface: String?
  /// For people: "eth0 carries the default route; Ethernet counts as unmetered".
  public var reason: String

  public init(kind: Kind, interface: String?, reason: String) {
    (self.kind, self.interface, self.reason) = (kind, interface, reason)
  }
}

/// Reports the network; the kernel pushes changes, nothing polls.
public protocol NetworkMonitor: Sendable {
  var current: NetworkStatus { get }
  /// Every change from now on, the newest only where the reader is behind.
  func changes() -> AsyncStream<NetworkStatus>
}

/// Random numbers, passed in so that a test can replay them.
public struct Randomness: RandomNumberGenerator, Sendable {
  private let draw: @Sendable () -> UInt64
  public init(_ draw: @escaping @Sendable () -> UInt64) { self.draw = draw }
  public func next() -> UInt64 { draw() }

  /// The system's own.
  public static let system = Randomness {
    var generator = SystemRandomNumberGenerator()
    return generator.next()
  }
}

/// Fetches answers that may be too large for memory: tables of records that come down. The edge implements it; tests script
/// it.
public protocol DownloadSource: Sendable {
  /// GETs into a file without a name, which is gone with its last holder. It never throws, so that no caller can forget a
  /// case; cancelling the task aborts the transfer. Redirects are not followed; TLS is verified.
  func download(_ request: TransferRequest) async -> DownloadAnswer
}

/// The result of a download.
public struct DownloadAnswer: Sendable {
  /// The answer's head, with the first 64 KiB of the body if `body` is nil; or why there is no answer.
  public var outcome: PostAnswer.Outcome
  /// The body of an answer with status 200.
  public var body: (any PieceSource & Sendable)?
  /// On the wire as HTTP sees it: request and answer, headers included.
  public var bytesOnWire: Int

  public init(outcome: PostAnswer.Outcome, body: (any PieceSource & Sendable)?, bytesOnWire: Int) {
    (self.outcome, self.body, self.bytesOnWire) = (outcome, body, bytesOnWire)
  }
}
