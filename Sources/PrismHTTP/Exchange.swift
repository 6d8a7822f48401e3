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
  private let permit: (any AnyObject & Sendable)?
  private let state: Mutex<ExchangeState>
  /// The part of `bodiesBytesMax` that this request's body uses.
  private let chargedBytes = Mutex(0)

  init(
    server: HTTPServer, connection: LibraryPointer, request: HTTPRequest, admission: HTTPAdmission
  ) {
    (self.server, self.connection, self.request) = (server, connection, request)
    let refusal: HTTPResponse?
    switch admission {
    case .take(let permit): (self.permit, refusal) = (permit, nil)
    case .refuse(let response): (permit, refusal) = (nil, response)
    }
    state = Mutex(
      ExchangeState(
        bodyBytesMax: server.options.bodyBytesMax, skippedBytesMax: server.options.skippedBytesMax, refusal: refusal))
  }

  deinit {
    server.bodies.give(back: chargedBytes.withLock { $0 }, of: request.peer.address)
  }

  func receive(_ bytes: UnsafeRawBufferPointer) -> MHD_Result {
    let isAffordable = server.bodies.take(bytes.count, of: request.peer.address)
    if isAffordable { chargedBytes.withLock { $0 += bytes.count } }
    return perform(state.withLock { $0.handle(.received(bytes, isAffordable: isAffordable)) })
  }

  func ready() -> MHD_Result {
    perform(state.withLock { $0.handle(.ready) })
  }

  private func perform(_ action: ExchangeState.Action) -> MHD_Result {
    switch action {
    case .goOn: return .YES
    case .close: return .NO
    case .respond(let response):
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
