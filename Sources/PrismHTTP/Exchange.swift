import CMicroHTTPD
import PrismBase
import Synchronization

/// One request and its answer. libmicrohttpd's thread feeds it; the handler's task answers it from any thread.
///
/// While the handler works, the connection is suspended: no thread of libmicrohttpd waits for it, and its pointer stays
/// valid, since libmicrohttpd ends no request of a suspended connection.
final class Exchange: Sendable {
  private let server: HTTPServer
  private let connection: LibraryPointer
  private let request: HTTPRequest
  private let state: Mutex<ExchangeState>
  /// The part of `bodiesBytesMax` that this request's body uses.
  private let charge = Mutex(BodyBudget.Charge())
  private let isProven: Bool

  init(
    server: HTTPServer, connection: LibraryPointer, request: HTTPRequest, refusal: HTTPResponse?, isProven: Bool
  ) {
    (self.server, self.connection, self.request, self.isProven) = (server, connection, request, isProven)
    state = Mutex(
      ExchangeState(
        bodyBytesMax: server.options.bodyBytesMax, skippedBytesMax: server.options.skippedBytesMax, refusal: refusal))
  }

  deinit { server.bodies.give(back: charge.withLock { $0 }) }

  func receive(_ bytes: UnsafeRawBufferPointer) -> MHD_Result {
    server.watch.received(connection, bytes.count)
    let isSkipping = state.withLock { $0.isSkipping }
    let isAffordable = isSkipping || affords(bytes.count)
    return perform(state.withLock { $0.handle(.received(bytes, isAffordable: isAffordable)) })
  }

  /// The slowest body of an unproven sender gives way to another sender's. Its memory comes back in a moment, so this body
  /// borrows it of the rest. So does the largest of those that fill their part at once: otherwise all of them would fail.
  private func affords(_ bytes: Int) -> Bool {
    let take = { [self] (isUrgent: Bool) in
      charge.withLock { server.bodies.take(bytes, isProven: isProven, isUrgent: isUrgent, into: &$0) }
    }
    if take(false) { return true }
    return !isProven && (server.watch.endSlowestBody(but: connection) || server.watch.hasLargestBody(connection))
      && take(true)
  }

  func ready() -> MHD_Result {
    perform(state.withLock { $0.handle(.ready) })
  }

  private func perform(_ action: ExchangeState.Action) -> MHD_Result {
    switch action {
    case .goOn: return .YES
    case .close: return .NO
    case .respond(let answer):
      let response = server.answers.streamed(answer)
      server.watch.expect(connection, within: server.options.answerTime(of: response))
      return response.queue(on: connection)
    case .callHandler:
      server.watch.expect(connection, within: nil)
      MHD_suspend_connection(connection.pointer)
      callHandler()
      return .YES
    case .resume:
      MHD_resume_connection(connection.pointer)
      return .YES
    }
  }

  private func callHandler() {
    var request = request
    request.body = state.withLock { $0.takeBody() }
    let isBackground = server.options.isBackground
    let task = Task(executorPreference: isBackground ? BackgroundExecutor.shared : nil) { [self, request] in
      let response = await server.handler(request)
      _ = perform(state.withLock { $0.handle(.answer(response)) })
    }
    if isBackground, request.method == .get { server.watch.waits(connection) { task.cancel() } }
  }
}

extension HTTPResponse {
  /// Hands a copy to libmicrohttpd, or the stream.
  func queue(on connection: LibraryPointer) -> MHD_Result {
    let made = stream.map { streamed($0) } ?? copied()
    guard let response = made else { return .NO }
    for header in headers { MHD_add_response_header(response, header.name, header.value) }
    defer { MHD_destroy_response(response) }
    return MHD_queue_response(connection.pointer, UInt32(status), response)
  }

  private func copied() -> OpaquePointer? {
    body.withUnsafeBytes {
      MHD_create_response_from_buffer(
        $0.count, UnsafeMutableRawPointer(mutating: $0.baseAddress), .RESPMEM_MUST_COPY)
    }
  }
}

/// One request on its way through the server: a pure machine; `Exchange` performs what it says.
struct ExchangeState: Sendable {
  enum Phase: Sendable {
    case receiving  // next: waiting, skipping
    case skipping(HTTPResponse)  // next: sending
    case waiting  // for the handler; the connection is suspended. next: answered
    case answered(HTTPResponse)  // next: sending
    case sending
  }

  enum Event {
    /// A piece of the body; `isAffordable`: the server has room for it beside all other bodies.
    case received(UnsafeRawBufferPointer, isAffordable: Bool)
    /// The body is complete, or the connection was resumed.
    case ready
    case answer(HTTPResponse)
  }

  enum Action {
    case goOn, close, callHandler, resume
    case respond(HTTPResponse)
  }

  private(set) var phase = Phase.receiving
  private(set) var body: [UInt8] = []
  private var skippedBytes = 0
  let bodyBytesMax: Int
  let skippedBytesMax: Int

  /// - Parameter refusal: given when the head alone says that the request is not taken.
  init(bodyBytesMax: Int, skippedBytesMax: Int, refusal: HTTPResponse?) {
    (self.bodyBytesMax, self.skippedBytesMax) = (bodyBytesMax, skippedBytesMax)
    if let refusal { phase = .skipping(refusal) }
  }

  mutating func handle(_ event: Event) -> Action {
    switch (phase, event) {
    case (.receiving, .received(let bytes, let isAffordable)):
      return receive(bytes, isAffordable: isAffordable)
    case (.skipping, .received(let bytes, _)):
      return skip(bytes.count)
    case (.receiving, .ready):
      phase = .waiting
      return .callHandler
    case (.skipping(let response), .ready), (.answered(let response), .ready):
      phase = .sending
      return .respond(response)
    case (.waiting, .answer(let response)):
      phase = .answered(response)
      return .resume
    case (.waiting, .ready), (.sending, .ready), (.receiving, .answer), (.skipping, .answer), (.answered, .answer),
      (.sending, .answer):
      return .goOn
    case (.waiting, .received), (.answered, .received), (.sending, .received):
      return .close  // a body after its end: the connection can't be trusted any more
    }
  }

  /// Each part of the body that comes is thrown away.
  var isSkipping: Bool {
    if case .skipping = phase { true } else { false }
  }

  /// The body leaves the state for its handler.
  mutating func takeBody() -> [UInt8] {
    defer { body = [] }
    return body
  }

  private mutating func receive(_ bytes: UnsafeRawBufferPointer, isAffordable: Bool) -> Action {
    if body.count + bytes.count > bodyBytesMax {
      refuse(.refusal(413, "the body is over \(bodyBytesMax) bytes"))
    } else if !isAffordable {
      refuse(.refusal(503, "too many requests at once, try again", headers: [("Retry-After", "1")]))
    } else {
      body.append(contentsOf: bytes)
      return .goOn
    }
    return skip(bytes.count)
  }

  private mutating func refuse(_ response: HTTPResponse) {
    phase = .skipping(response)
    body = []
  }

  private mutating func skip(_ count: Int) -> Action {
    skippedBytes += count
    return skippedBytes > skippedBytesMax ? .close : .goOn
  }
}
