import PrismEngine
import PrismProtocol

/// HTTP/1.1 on the ingest socket (docs/ingest-protocol.md), for those who have only that. Pure: bytes in, bytes out.
///
/// A body is read whole and handed to the connection's conversation; when all of its reports are settled, their answers
/// become the answer. One request is worked on at a time; pipelined ones wait in the socket.
struct HTTPExchange {
  private enum State {
    case head
    case body(HTTPHead)
    case chunks(HTTPHead, ChunkedBody)
    /// The reports of a body are on their way.
    case awaiting(HTTPHead)
    case closing
  }

  static let reports = "/v1/reports", limits = "/v1/limits", common = "/v1/common"
  /// A body of many reports; one with a larger payload may be as long as that takes.
  static let bodyBytesMax = 4 * 1024 * 1024

  private var state = State.head
  private var input: [UInt8] = []
  private var output: [UInt8] = []

  var isAwaitingAnswers: Bool { if case .awaiting = state { true } else { false } }
  var mustClose: Bool { if case .closing = state { true } else { false } }
  var isWithinRequest: Bool {
    switch state {
    case .head: !input.isEmpty
    case .body, .chunks: true
    case .awaiting, .closing: false
    }
  }
  var heldBytes: Int {
    if case .chunks(_, let chunks) = state { input.count + chunks.body.count } else { input.count }
  }

  var hasOutput: Bool { !output.isEmpty }

  mutating func takeOutput() -> [UInt8] {
    defer { output = [] }
    return output
  }

  mutating func consume(_ chunk: Span<UInt8>, _ conversation: inout IngestConversation, unixMilliseconds now: Int64) {
    if mustClose { return }
    input.append(copying: chunk, chunk.indices)
    proceed(&conversation, unixMilliseconds: now)
  }

  /// The client sends nothing more.
  mutating func end() {
    if isWithinRequest { fail(HTTPHead.Fault(400, "the connection ended within the request")) }
  }

  /// Goes on with what is there, up to the next thing that must be waited for.
  mutating func proceed(_ conversation: inout IngestConversation, unixMilliseconds now: Int64) {
    do throws(HTTPHead.Fault) {
      while try step(&conversation, now) {}
    } catch { fail(error) }
  }

  /// - Returns: whether another step may be possible.
  private mutating func step(
    _ conversation: inout IngestConversation, _ now: Int64
  ) throws(HTTPHead.Fault) -> Bool {
    switch state {
    case .head: return try readHead(conversation)
    case .body(let head):
      guard case .length(let length) = head.body else { return handle(head, [], &conversation, now) }
      guard input.count >= length else { return false }
      let body = Array(input.prefix(length))
      input.removeFirst(length)
      return handle(head, body, &conversation, now)
    case .chunks(let head, let chunks): return try readChunks(head, chunks, &conversation, now)
    case .awaiting, .closing: return false
    }
  }

  private mutating func readHead(_ conversation: IngestConversation) throws(HTTPHead.Fault) -> Bool {
    while input.starts(with: [0x0D, 0x0A]) { input.removeFirst(2) }  // RFC 9112, 2.2
    guard let end = Self.endOfHead(input) else {
      guard input.count <= HTTPHead.bytesMax else {
        throw HTTPHead.Fault(431, "the head is longer than \(HTTPHead.bytesMax) bytes")
      }
      return false
    }
    guard end <= HTTPHead.bytesMax else {
      throw HTTPHead.Fault(431, "the head is longer than \(HTTPHead.bytesMax) bytes")
    }
    let head = try HTTPHead(input[..<end])
    input.removeFirst(end)
    try Self.checkRoute(head)
    if case .length(let length) = head.body, length > Self.bytesMax(conversation) { throw Self.tooLarge(conversation) }
    if head.expectsContinue, head.body != .none, input.isEmpty {
      output += "HTTP/1.1 100 Continue\r\n\r\n".utf8
    }
    state = head.body == .chunked ? .chunks(head, ChunkedBody()) : .body(head)
    return true
  }

  private mutating func readChunks(
    _ head: HTTPHead, _ before: ChunkedBody, _ conversation: inout IngestConversation, _ now: Int64
  ) throws(HTTPHead.Fault) -> Bool {
    var chunks = before
    state = .head  // lets go of the body, so that it grows in place
    var rest = input[...]
    do throws(ChunkedBody.Malformed) { try chunks.consume(&rest) } catch {
      throw HTTPHead.Fault(400, "the body's chunks are malformed")
    }
    input = Array(rest)
    guard chunks.body.count <= Self.bytesMax(conversation) else { throw Self.tooLarge(conversation) }
    if chunks.isDone { return handle(head, chunks.body, &conversation, now) }
    state = .chunks(head, chunks)
    return false
  }

  private static func bytesMax(_ conversation: IngestConversation) -> Int {
    max(bodyBytesMax, conversation.session.rules.lineBytesMax)
  }

  private static func tooLarge(_ conversation: IngestConversation) -> HTTPHead.Fault {
    HTTPHead.Fault(413, "the body is larger than \(bytesMax(conversation)) bytes; send it in parts")
  }

  private static func endOfHead(_ input: [UInt8]) -> Int? {
    guard input.count >= 4 else { return nil }
    for index in 3..<input.count where input[index] == 0x0A {
      if input[index - 1] == 0x0D, input[index - 2] == 0x0A, input[index - 3] == 0x0D { return index + 1 }
    }
    return nil
  }

  private static func checkRoute(_ head: HTTPHead) throws(HTTPHead.Fault) {
    switch (head.path, head.method) {
    case (reports, "POST"), (limits, "GET"), (common, "GET"): return
    case (reports, _): throw HTTPHead.Fault(405, "\(reports) takes POST")
    case (limits, _), (common, _): throw HTTPHead.Fault(405, "\(head.path) takes GET")
    default: throw HTTPHead.Fault(404, "there are POST \(reports), GET \(limits), GET \(common)")
    }
  }
}

// MARK: - Answers

extension HTTPExchange {
  private mutating func handle(
    _ head: HTTPHead, _ body: [UInt8], _ conversation: inout IngestConversation, _ now: Int64
  ) -> Bool {
    switch head.path {
    case Self.limits:
      let limits = AnswerText.limits(payloadBytesMax: conversation.session.rules.payloadBytesMax)
      answer(head, 200, limits.bytes + [0x0A])
      return !mustClose
    case Self.common:
      answer(head, 200, [0x7B] + conversation.session.context.members + [0x7D, 0x0A])
      return !mustClose
    default:
      conversation.forcedAnswerMode = .each
      let lines = Self.lines(body)
      conversation.consume(lines.span, unixMilliseconds: now)
      conversation.end(unixMilliseconds: now)
      state = .awaiting(head)
      return false
    }
  }

  /// One report that is written over several lines becomes one line; everything else is as it came.
  private static func lines(_ body: [UInt8]) -> [UInt8] {
    guard let end = body.firstIndex(of: 0x0A) else { return body }
    let none = ReservedKeys([])
    if case .success = RequestScanner.scan(body.span.extracting(0..<end), reserved: none).request { return body }
    let whole = RequestScanner.scan(body.span, reserved: none)
    guard case .success = whole.request, whole.followingBytes == 0 else { return body }
    return body.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 }  // no string has either: it is sound JSON
  }

  /// Takes the answers of a body whose reports are all settled.
  mutating func collect(from conversation: inout IngestConversation) {
    guard case .awaiting(let head) = state, conversation.isSettled else { return }
    state = .head
    let lines = conversation.output
    conversation.output = []
    guard !lines.isEmpty else {
      return answer(head, 400, AnswerText.refused(Refusal(.badRequest, "the body holds no report")))
    }
    let isSingle = lines.firstIndex(of: 0x0A) == lines.count - 1
    let refusal = isSingle ? try? JSONValue(parsing: lines) : nil
    let code = refusal?["code"]?.string.flatMap(RefusalCode.init)
    answer(head, code.map(Self.status) ?? 200, lines, retryMilliseconds: refusal?["retryMs"]?.int)
    if conversation.mustClose { state = .closing }
  }

  static func status(_ code: RefusalCode) -> Int {
    switch code {
    case .badRequest, .unknownNamespace, .unknownType: 400
    case .gatherOff, .forbidden: 403
    case .metaTooLarge, .payloadTooLarge: 413
    case .storeFull: 429
    case .busy, .diskFull, .unknown, .internal: 503
    }
  }

  /// A connection that is refused before its request was read.
  static func response(to refusal: Refusal) -> [UInt8] {
    render(
      status(refusal.code), AnswerText.refused(refusal), keepAlive: false, retryMilliseconds: refusal.retryMilliseconds)
  }

  private mutating func fail(_ fault: HTTPHead.Fault) {
    let code: RefusalCode = fault.status == 413 ? .payloadTooLarge : .badRequest
    output += Self.render(fault.status, AnswerText.refused(Refusal(code, fault.message)), keepAlive: false)
    (state, input) = (.closing, [])
  }

  private mutating func answer(_ head: HTTPHead, _ status: Int, _ body: [UInt8], retryMilliseconds: Int? = nil) {
    output += Self.render(status, body, keepAlive: head.isKeptAlive, retryMilliseconds: retryMilliseconds)
    state = head.isKeptAlive ? .head : .closing
  }

  private static func render(
    _ status: Int, _ body: [UInt8], keepAlive: Bool, retryMilliseconds: Int? = nil
  ) -> [UInt8] {
    var head = "HTTP/1.1 \(status) \(reason(status))\r\nContent-Type: application/json\r\n"
    head += "Content-Length: \(body.count)\r\n"
    if status == 405 { head += "Allow: GET, POST\r\n" }
    if let retryMilliseconds { head += "Retry-After: \((retryMilliseconds + 999) / 1000)\r\n" }
    if !keepAlive { head += "Connection: close\r\n" }
    return Array(head.utf8) + [0x0D, 0x0A] + body
  }

  private static func reason(_ status: Int) -> String {
    let reasons = [
      200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
      413: "Content Too Large", 415: "Unsupported Media Type", 417: "Expectation Failed", 429: "Too Many Requests",
      431: "Request Header Fields Too Large", 501: "Not Implemented", 503: "Service Unavailable",
      505: "HTTP Version Not Supported",
    ]
    return reasons[status] ?? "Refused"
  }
}
