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

  /// The port on which the server listens; 0 if it does not listen.
  public let port: UInt16
  let options: HTTPServerOptions
  let gate: Gate
  let handler: Handler
  let bodies: BodyBudget
  let answers: AnswerBudget
  let watch: ConnectionWatch
  let time: any TimeSource
  private let listener: ListeningSocket?
  private let state = Mutex(State())

  /// - Parameters:
  ///   - listener: nil when connections only come by `adopt`. It is the server's from here on, and closed when this throws.
  ///   - time: of the deadlines, and of `HTTPRequest.headTime`.
  public init(
    listener: ListeningSocket?, options: HTTPServerOptions = HTTPServerOptions(), time: any TimeSource = SystemTime(),
    gate: @escaping Gate = { _ in .take() }, handler: @escaping Handler
  ) throws(HTTPServerError) {
    (self.listener, self.options, self.time, self.gate, self.handler) = (listener, options, time, gate, handler)
    port = listener?.port ?? 0
    bodies = BodyBudget(bytesMax: options.bodiesBytesMax, bodyBytesMax: options.bodyBytesMax)
    answers = AnswerBudget(bytesMax: options.answersBytesMax)
    watch = ConnectionWatch(options, time: time)
    guard let daemon = startLibrary(for: self, listener: listener) else {
      listener.map { _ = close($0.descriptor) }
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
        if let listener = self.listener { close(listener.descriptor) }
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
