import CMicroHTTPD
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
    Task { [request] in
      let response = await server.handler(request)
      _ = perform(state.withLock { $0.handle(.answer(response)) })
    }
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
