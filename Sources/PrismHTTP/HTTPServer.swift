import CMicroHTTPD
import Dispatch
import Glibc
public import PrismBase
import Synchronization

/// A small HTTP/1.1 server over libmicrohttpd: one thread for all sockets, which no request ever blocks.
///
/// A request is read within the limits of `HTTPServerOptions`, then its connection sleeps while `handler` works, on the
/// cooperative pool, so a handler must not block either. It runs until `stop`.
public final class HTTPServer: Sendable {
  /// Answers one request. It may be called on any thread.
  public typealias Handler = @Sendable (HTTPRequest) async -> HTTPResponse
  /// Called on the server's thread with each request whose head was read: it must not block.
  public typealias Gate = @Sendable (HTTPRequest) -> HTTPAdmission

  private struct State {
    var daemon: LibraryPointer?
    var isStopping = false
    var openRequests = 0
    var whenIdle: CheckedContinuation<Void, Never>?
  }

  /// The port on which the server listens; 0 for a Unix socket.
  public let port: UInt16
  let options: HTTPServerOptions
  let gate: Gate
  let handler: Handler
  let bodies: BodyBudget
  let answers: AnswerBudget
  let watch: ConnectionWatch
  let time: any TimeSource
  private let listener: ListeningSocket
  private let state = Mutex(State())

  /// - Parameters:
  ///   - listener: it is the server's from here on, and closed when this throws.
  ///   - time: of the deadlines, and of `HTTPRequest.headTime`.
  public init(
    listener: ListeningSocket, options: HTTPServerOptions = HTTPServerOptions(), time: any TimeSource = SystemTime(),
    gate: @escaping Gate = { _ in .take() }, handler: @escaping Handler
  ) throws(HTTPServerError) {
    (self.listener, self.options, self.time, self.gate, self.handler) = (listener, options, time, gate, handler)
    port = listener.port
    bodies = BodyBudget(bytesMax: options.bodiesBytesMax, bodyBytesMax: options.bodyBytesMax)
    answers = AnswerBudget(bytesMax: options.answersBytesMax)
    watch = ConnectionWatch(options, time: time)
    guard let daemon = startLibrary(for: self, listener: listener) else {
      close(listener.descriptor)
      throw .cannotStart(withTLS: options.tls != nil)
    }
    state.withLock { $0.daemon = daemon }
  }

  /// Its connections, now.
  public var connections: ConnectionFigures { watch.figures }

  /// Takes no more requests, lets those in flight be answered, and ends. It waits for every handler to return, so the
  /// caller first ends what they may wait for; then for the answers to be read, at most `stopTimeout`.
  public func stop() async {
    let daemon = state.withLock { state -> LibraryPointer? in
      defer { state.isStopping = true }
      return state.isStopping ? nil : state.daemon
    }
    guard let daemon else { return }
    MHD_quiesce_daemon(daemon.pointer)
    watch.endAll(within: options.stopTimeout)
    await withCheckedContinuation { continuation in
      let isIdle = state.withLock { state in
        if state.openRequests > 0 { state.whenIdle = continuation }
        return state.openRequests == 0
      }
      if isIdle { continuation.resume() }
    }
    await endLibrary(daemon)
  }

  /// Waits for libmicrohttpd's thread to end, on a thread that may wait.
  private func endLibrary(_ daemon: LibraryPointer) async {
    state.withLock { $0.daemon = nil }
    await withCheckedContinuation { continuation in
      DispatchQueue.global().async {
        stopLibrary(daemon, of: self)
        close(self.listener.descriptor)
        continuation.resume()
      }
    }
  }

  /// false: the server is stopping, the request is not to be taken.
  func beginRequest() -> Bool {
    state.withLock { state in
      guard !state.isStopping else { return false }
      state.openRequests += 1
      return true
    }
  }

  func endRequest() {
    let idle = state.withLock { state -> CheckedContinuation<Void, Never>? in
      state.openRequests -= 1
      guard state.openRequests == 0 else { return nil }
      defer { state.whenIdle = nil }
      return state.whenIdle
    }
    idle?.resume()
  }
}

/// A server's limits. Every peer is held to misbehave: nothing here is without bound.
public struct HTTPServerOptions: Sendable {
  /// Requests are worked on behind everything else (`BackgroundExecutor`). The task of a GET is cancelled if its client goes.
  public var isBackground = false
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
  public var stopTimeout: Duration = .seconds(3)
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
