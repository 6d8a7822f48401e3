import CMicroHTTPD
import Glibc
import PrismBase

// Every C callback, and every pointer that C holds on to, is in this file.
//
// Ownership: libmicrohttpd holds one reference to the `HTTPServer` from `startLibrary` to `stopLibrary`, as the context
// of callbacks. It holds one to each `Exchange`, in the request's own slot, from the first call of `answer` to
// `completed`. It calls `completed` for every request of which it called `answer`.

func startLibrary(for server: HTTPServer, listener: ListeningSocket) -> LibraryPointer? {
  let context = Unmanaged.passRetained(server)
  let daemon = server.options.withLibraryOptions(listener) { options in
    prism_http_start(
      server.options.libraryFlags, context.toOpaque(), answer, completed, connectionChanged, noteTarget, options)
  }
  guard let daemon else {
    context.release()
    return nil
  }
  return LibraryPointer(daemon)
}

/// Blocks until the server's thread has ended.
func stopLibrary(_ daemon: LibraryPointer, of server: HTTPServer) {
  MHD_stop_daemon(daemon.pointer)
  Unmanaged.passUnretained(server).release()
}

/// MHD_OPTION_URI_LOG_CALLBACK: called when the request line was read, before `answer`.
private func noteTarget(
  _ context: UnsafeMutableRawPointer?, _ target: UnsafePointer<CChar>?, _ connection: OpaquePointer?
) -> UnsafeMutableRawPointer? {
  target.flatMap { RequestTarget($0).slot }
}

/// libmicrohttpd's MHD_AccessHandlerCallback. It is called once with the head of a request, then with each piece of its
/// body. Then, and after each resume, it is called without data.
private func answer(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?, _ path: UnsafePointer<CChar>?,
  _ method: UnsafePointer<CChar>?, _ version: UnsafePointer<CChar>?, _ data: UnsafePointer<CChar>?,
  _ dataBytes: UnsafeMutablePointer<Int>?, _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?
) -> MHD_Result {
  guard let context, let connection, let path, let method, let version, let dataBytes, let slot else { return .NO }
  guard let known = slot.pointee else { return .NO }
  if let target = RequestTarget(slot: known) {
    slot.pointee = nil
    let raw = RawHead(method: method, path: path, version: version, byteCount: prism_http_head_bytes(connection))
    let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
    var head = RequestHead(connection, raw)
    head.request.headTime = server.time.uptime
    head.resolvePeer(trusted: server.options.trustedProxies)
    if let fault = raw.fault(of: connection, target) ?? head.fault {
      return HTTPResponse.refusal(400, fault, headers: [("Connection", "close")]).queue(on: LibraryPointer(connection))
    }
    return server.begin(head, on: LibraryPointer(connection), slot: slot)
  }
  let exchange = Unmanaged<Exchange>.fromOpaque(known).takeUnretainedValue()
  guard dataBytes.pointee > 0 else { return exchange.ready() }
  defer { dataBytes.pointee = 0 }
  return exchange.receive(UnsafeRawBufferPointer(start: data, count: dataBytes.pointee))
}

/// MHD_RequestCompletedCallback: the request was answered, or its connection is gone.
private func completed(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ how: MHD_RequestTerminationCode
) {
  guard let context, let connection, let slot, let known = slot.pointee else { return }
  slot.pointee = nil
  guard RequestTarget(slot: known) == nil else { return }  // its head did not come whole
  Unmanaged<Exchange>.fromOpaque(known).release()
  let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
  server.watch.answered(LibraryPointer(connection))
  server.endRequest()
}

/// MHD_NotifyConnectionCallback: called before the first request, and after the last, before the socket is closed.
private func connectionChanged(
  _ context: UnsafeMutableRawPointer?, _ connection: OpaquePointer?,
  _ slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ how: MHD_ConnectionNotificationCode
) {
  guard let context, let connection else { return }
  let server = Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue()
  if how == .CONNECTION_NOTIFY_STARTED {
    server.watch.opened(
      LibraryPointer(connection), socket: prism_http_socket(connection),
      from: HTTPPeer(prism_http_peer(connection)))
  } else {
    server.watch.closed(LibraryPointer(connection))
  }
}

/// A refused body of at most as many bytes is skipped, so that its connection goes on.
private let skippedBodyBytesMax = 65_536

extension HTTPServer {
  /// Decides by its head what becomes of a request.
  fileprivate func begin(
    _ head: RequestHead, on connection: LibraryPointer, slot: UnsafeMutablePointer<UnsafeMutableRawPointer?>
  ) -> MHD_Result {
    guard beginRequest() else {
      return HTTPResponse.refusal(503, "stopping", headers: [("Connection", "close")]).queue(on: connection)
    }
    let isKnown = watch.began(
      connection, of: head.request.peer.network, bodyTime: options.bodyTime(bytes: head.bodyBytes))
    let (refusal, isProven): (HTTPResponse?, Bool)
    switch admit(head, on: connection) {
    case .take(let isProvenNow):
      // Its certificate was checked.
      (refusal, isProven) = (nil, isProvenNow || isKnown || options.tls?.clientAuthorities != nil)
    case .refuse(let response): (refusal, isProven) = (response, isKnown)
    }
    var request = head.request
    let prove: @Sendable () -> Void = { [watch, client = request.peer.network] in watch.prove(connection, of: client) }
    request.onProof = prove
    if isProven { prove() }
    let exchange = Exchange(
      server: self, connection: connection, request: request, refusal: refusal, isProven: isProven)
    slot.pointee = Unmanaged.passRetained(exchange).toOpaque()
    // Where the sender waits for a word before it sends the body, or the body is too long to be read in vain.
    if var response = refusal, head.expectsContinue || head.isChunked || (head.bodyBytes ?? 0) > skippedBodyBytesMax {
      response.headers.append(("Connection", "close"))
      watch.expect(connection, within: options.bodyTimeout)
      watch.linger(connection)
      return response.queue(on: connection)
    }
    return .YES
  }

  private func admit(_ head: RequestHead, on connection: LibraryPointer) -> HTTPAdmission {
    guard head.isMethodKnown else {
      return .refuse(
        .refusal(
          405, "the method is not known here", headers: [("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")]))
    }
    if options.tls?.clientAuthorities != nil, prism_http_client_is_certified(connection.pointer) == 0 {
      return .refuse(.refusal(401, "a client certificate of a known authority is required"))
    }
    if let name = head.repeatedParameter(but: options.listParameters) {
      return .refuse(.refusal(400, "the parameter `\(name.prefix(64))` is there twice"))
    }
    if let bytes = head.bodyBytes, bytes > options.bodyBytesMax {
      return .refuse(.refusal(413, "the body is over \(options.bodyBytesMax) bytes"))
    }
    return gate(head.request)
  }
}

// MARK: - Bodies that are made while they are sent

/// Bytes that libmicrohttpd asks for at a time.
private let streamBlockBytes = 65_536

/// libmicrohttpd holds one reference to the stream, from here until it calls `streamEnded`.
func streamed(_ stream: HTTPStream) -> OpaquePointer? {
  let context = Unmanaged.passRetained(StreamContext(stream))
  let response = MHD_create_response_from_callback(
    UInt64(stream.byteCount), streamBlockBytes, readStream, context.toOpaque(), streamEnded)
  if response == nil { context.release() }
  return response
}

private final class StreamContext: Sendable {
  let stream: HTTPStream
  init(_ stream: HTTPStream) { self.stream = stream }
}

/// MHD_ContentReaderCallback; -2 ends the connection, so that the peer sees that the body is not whole.
private func readStream(
  _ context: UnsafeMutableRawPointer?, _ position: UInt64, _ buffer: UnsafeMutablePointer<CChar>?, _ count: Int
) -> Int {
  guard let context, let buffer else { return -2 }
  let stream = Unmanaged<StreamContext>.fromOpaque(context).takeUnretainedValue().stream
  guard let written = stream.read(UnsafeMutableRawBufferPointer(start: buffer, count: count)), written > 0 else {
    return -2
  }
  return written
}

/// MHD_ContentReaderFreeCallback.
private func streamEnded(_ context: UnsafeMutableRawPointer?) {
  if let context { Unmanaged<StreamContext>.fromOpaque(context).release() }
}

// In libmicrohttpd's terms.
extension HTTPServerOptions {
  fileprivate var libraryFlags: UInt32 {
    MHD_USE_EPOLL_INTERNAL_THREAD.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue | (tls == nil ? 0 : MHD_USE_TLS.rawValue)
  }

  /// The PEM texts are only valid within `body`: libmicrohttpd reads them while it starts.
  fileprivate func withLibraryOptions<Result>(
    _ listener: ListeningSocket, _ body: (UnsafePointer<MHD_OptionItem>) -> Result
  ) -> Result {
    let numbers: [(MHD_OPTION, Int)] = [
      // Those that give way are closed a moment later.
      (.CONNECTION_LIMIT, connectionsMax + 256), (.CONNECTION_MEMORY_LIMIT, headBytesMax),
      (.CONNECTION_TIMEOUT, max(1, Int(headTimeout.components.seconds))), (.STRICT_FOR_CLIENT, 1),
      (.LISTEN_SOCKET, Int(listener.descriptor)),
    ]
    let texts = pemTexts.map { (option: $0.0, text: strdup($0.1)) }
    defer { for text in texts { free(text.text) } }
    return body(
      numbers.map { MHD_OptionItem(option: $0.0, value: $0.1, ptr_value: nil) }
        + texts.map { MHD_OptionItem(option: $0.option, value: 0, ptr_value: $0.text) }
        + [MHD_OptionItem(option: .END, value: 0, ptr_value: nil)])
  }

  private var pemTexts: [(MHD_OPTION, String)] {
    guard let tls else { return [] }
    let texts: [(MHD_OPTION, String)] = [
      (.HTTPS_MEM_KEY, String(decoding: tls.key, as: UTF8.self)),
      (.HTTPS_MEM_CERT, String(decoding: tls.certificate, as: UTF8.self)),
      (.HTTPS_PRIORITIES, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"),
    ]
    return texts + (tls.clientAuthorities.map { [(.HTTPS_MEM_TRUST, String(decoding: $0, as: UTF8.self))] } ?? [])
  }
}

/// A connection or a daemon of libmicrohttpd, whose own functions take it from any thread. Kept as a number, since a
/// pointer may not cross threads by Swift's rules; who holds one says why it is still valid.
struct LibraryPointer: Sendable, Hashable {
  private let bits: UInt

  init(_ pointer: OpaquePointer) {
    bits = UInt(bitPattern: pointer)
  }

  var pointer: OpaquePointer {
    OpaquePointer(bitPattern: bits)!
  }
}
