import PrismAdmission
import PrismInputs
import PrismProtocol

/// HTTP/1.1 on the ingest socket (docs/ingest-protocol.md), for programs that have only that. Pure: bytes in, bytes out.
///
/// A body is read whole and handed to the connection's conversation; when all of its reports are settled, their answers
/// become the response. One request is worked on at a time; pipelined ones wait. Each byte is looked at once.
struct HTTPExchange {
  enum State {
    case head
    case body(HTTPHead)
    case chunks(HTTPHead)
    /// The body is whole and the conversation takes it, turn by turn.
    case feeding(HTTPHead)
    /// The reports of a body are on their way.
    case awaiting(HTTPHead)
    /// A list of records waits for a change of its table.
    case polling(HTTPHead)
    /// Another input answers the request; its memory stays reserved until then.
    case handed(HTTPHead, bytes: Int)
    case closing
  }

  /// A body of many reports; one with a larger payload may be as long as that takes.
  static let bodyBytesMax = 4 * 1024 * 1024
  /// Of one answer to a line of a body, in most cases.
  private static let answerBytes = 320

  var state = State.head
  /// The head as far as it came.
  private var headText: [UInt8] = []
  var body: [UInt8] = []
  private var chunks = ChunkedBody()
  /// Bytes of the body that the conversation has taken, and the lines that the body has.
  var fedBytes = 0, bodyLines = 0
  private var output: [UInt8] = []
  /// The request that is being read, or is handed over, if another input answers it.
  private var inputRequest: InputRequest?
  /// The request that is being read or answered, if it is about records.
  private(set) var record: RecordRoute?
  private var route = IngestRoute.reports
  private let routes: HTTPRoutes
  /// A request of another input that was refused before it was whole, to be counted.
  private(set) var refusedRequest: IngestCounters.InputResult?

  init(routes: HTTPRoutes = HTTPRoutes()) { self.routes = routes }

  var isAwaitingAnswers: Bool {
    switch state {
    case .awaiting, .polling, .handed: true
    case .head, .body, .chunks, .feeding, .closing: false
    }
  }
  /// Another input has the request.
  var isHanded: Bool { if case .handed = state { true } else { false } }
  var isFeeding: Bool { if case .feeding = state { true } else { false } }
  var mustClose: Bool { if case .closing = state { true } else { false } }
  var isWithinRequest: Bool {
    switch state {
    case .head: !headText.isEmpty
    case .body, .chunks: true
    case .feeding, .awaiting, .polling, .handed, .closing: false
    }
  }
  var heldBytes: Int {
    let handedBytes = if case .handed(_, let bytes) = state { bytes } else { 0 }
    return headText.count + body.count + chunks.heldBytes + output.count + handedBytes
  }
  /// The most memory of the request that is being read, once it is large.
  func requestBytes(_ rules: AdmissionRules) -> Int {
    let bytes: Int
    switch state {
    case .body(let head):
      guard case .length(let length) = head.body else { return 0 }
      if let inputRequest { return HTTPRoutes.requestBytes(length, isPacked: inputRequest.isPacked, rules) }
      bytes = length / 4 * 7
    case .chunks:
      guard body.count > Limits.lineBytesMax else { return 0 }
      if inputRequest != nil { return rules.requestBytesMax }
      bytes = Self.bytesMax(rules) / 4 * 7
    case .handed(_, let handedBytes): return handedBytes
    case .feeding: bytes = body.count + max(body.count / 4 * 3, bodyLines * Self.answerBytes)
    case .head, .awaiting, .polling, .closing: return 0
    }
    return bytes > Limits.lineBytesMax ? min(bytes + Limits.lineBytesMax, rules.requestBytesMax) : 0
  }

  mutating func takeOutput() -> [UInt8] {
    defer { output = [] }
    return output
  }

  /// Takes input as far as `turn` goes, or up to the next thing that must be waited for.
  /// - Returns: the position behind what was taken.
  mutating func consume(
    _ chunk: Span<UInt8>, from start: Int, _ conversation: inout IngestConversation, within turn: inout WorkTurn,
    unixMilliseconds now: Int64
  ) -> Int {
    var position = start
    do throws(HTTPHead.Fault) {
      while turn.goesOn(unreadBytes: output.count) {
        let before = position
        let goesOn = try step(chunk, &position, &conversation, &turn, now)
        turn.spend(position - before + WorkTurn.Cost.line)
        if !goesOn { break }
      }
    } catch { fail(error) }
    return mustClose ? chunk.count : position
  }

  /// The client sends nothing more.
  mutating func end(_ conversation: inout IngestConversation, unixMilliseconds now: Int64) {
    if isFeeding { conversation.end(unixMilliseconds: now) }
    if isWithinRequest || isFeeding { fail(HTTPHead.Fault(400, "the connection ended within the request")) }
  }

  /// - Returns: whether another step may be possible.
  private mutating func step(
    _ chunk: Span<UInt8>, _ position: inout Int, _ conversation: inout IngestConversation, _ turn: inout WorkTurn,
    _ now: Int64
  ) throws(HTTPHead.Fault) -> Bool {
    switch state {
    case .head:
      guard position < chunk.count else { return false }
      guard try takeHeadLine(chunk, &position) else { return true }
      turn.spend(WorkTurn.Cost.question)
      try beginBody(conversation, isMoreHere: position < chunk.count)
      return true
    case .body(let head):
      guard case .length(let length) = head.body else { return try handle(head, conversation, &turn) }
      let end = min(chunk.count, position + length - body.count)
      body.append(copying: chunk, position..<end)
      position = end
      return body.count == length ? try handle(head, conversation, &turn) : false
    case .chunks(let head): return try takeChunks(head, chunk, &position, conversation, &turn)
    case .feeding(let head): return feed(head, &conversation, &turn, now)
    case .awaiting, .polling, .handed, .closing: return false
    }
  }

  /// - Returns: whether the head is whole.
  private mutating func takeHeadLine(_ chunk: Span<UInt8>, _ position: inout Int) throws(HTTPHead.Fault) -> Bool {
    let end = RequestFramer.lineFeed(chunk, from: position)
    let piece = position..<(end.map { $0 + 1 } ?? chunk.count)
    guard headText.count + piece.count <= HTTPHead.bytesMax else {
      throw HTTPHead.Fault(431, "the head is longer than \(HTTPHead.bytesMax) bytes")
    }
    headText.append(copying: chunk, piece)
    position = piece.upperBound
    // An empty line before a request is passed over (RFC 9112, 2.2).
    if headText == [UInt8(ascii: "\r"), UInt8(ascii: "\n")] { headText = [] }
    return headText.suffix(4) == [UInt8(ascii: "\r"), UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "\n")]
  }

  private mutating func beginBody(
    _ conversation: IngestConversation, isMoreHere: Bool
  ) throws(HTTPHead.Fault) {
    let head = try HTTPHead(headText[...])
    headText = []
    inputRequest = routes.inputRequest(head)
    let parts: [String]
    (route, parts) = try routes.find(head, inputRequest)
    if case .record(let verb) = route { record = try RecordRoute(verb, head, parts) }
    if case .length(let length) = head.body {
      guard length <= bytesMax(conversation.session.rules) else { throw tooLarge(conversation) }
      body.reserveCapacity(length)
    }
    if head.expectsContinue, head.body != .none, !isMoreHere { output += "HTTP/1.1 100 Continue\r\n\r\n".utf8 }
    chunks = ChunkedBody()
    state = head.body == .chunked ? .chunks(head) : .body(head)
  }

  private mutating func takeChunks(
    _ head: HTTPHead, _ chunk: Span<UInt8>, _ position: inout Int, _ conversation: IngestConversation,
    _ turn: inout WorkTurn
  ) throws(HTTPHead.Fault) -> Bool {
    let start = position
    do throws(ChunkedBody.Fault) {
      let bytesMax = bytesMax(conversation.session.rules)
      try chunks.consume(chunk, &position, into: &body, bodyBytesMax: bytesMax)
    } catch {
      if error == .tooLarge { throw tooLarge(conversation) }
      throw HTTPHead.Fault(400, "the body's chunks are malformed")
    }
    turn.spend(3 * (position - start))
    return chunks.isDone ? try handle(head, conversation, &turn) : false
  }

  private static func bytesMax(_ rules: AdmissionRules) -> Int {
    min(max(bodyBytesMax, rules.lineBytesMax), rules.requestBytesMax / 7 * 4)
  }

  private func bytesMax(_ rules: AdmissionRules) -> Int {
    if record != nil { return RecordRoute.bodyBytesMax }
    if inputRequest != nil { return routes.input?.bodyBytesMax ?? .max }
    return Self.bytesMax(rules)
  }

  private func tooLarge(_ conversation: IngestConversation) -> HTTPHead.Fault {
    HTTPHead.Fault(413, "the body is larger than \(bytesMax(conversation.session.rules)) bytes; send it in parts")
  }

  // MARK: Bodies

  /// A request is whole.
  private mutating func handle(
    _ head: HTTPHead, _ conversation: IngestConversation, _ turn: inout WorkTurn
  ) throws(HTTPHead.Fault) -> Bool {
    switch route {
    case .input:
      hand(head, conversation.session.rules)
      return false
    case .record:
      turn.spend(body.count)
      beginFeeding(try record?.line(body) ?? [], head)
      return true
    case .limits:
      answer(head, AnswerText.limits(payloadBytesMax: conversation.session.rules.payloadBytesMax).bytes)
      return !mustClose
    case .common:
      answer(head, Array("{".utf8) + conversation.session.context.members + Array("}".utf8))
      return !mustClose
    case .reports: break
    }
    joinLines()
    bodyLines = BodyLines.count(body.span, max: Limits.bodyLinesMax, lineBytesMax: body.count)
    turn.spend(body.count / 4)
    guard bodyLines <= Limits.bodyLinesMax else {
      throw HTTPHead.Fault(413, "the body has more than \(Limits.bodyLinesMax) lines; send it in parts")
    }
    fedBytes = 0
    state = .feeding(head)
    return body.count <= Limits.lineBytesMax  // a larger one waits until its memory is reserved
  }

  private mutating func answer(_ head: HTTPHead, _ line: [UInt8]) {
    body = []
    answer(head, InputAnswer(body: line + Array("\n".utf8)))
  }

  private mutating func hand(_ head: HTTPHead, _ rules: AdmissionRules) {
    guard var request = inputRequest else { return }
    request.reservedBytes = HTTPRoutes.heldBytes(body, isPacked: request.isPacked, rules)
    swap(&request.body, &body)
    (state, inputRequest) = (.handed(head, bytes: request.reservedBytes), request)
  }

  /// Takes the request that another input is to answer; then `finish` brings the answer.
  mutating func takeRequest() -> InputRequest? {
    defer { if isHanded { inputRequest = nil } }
    return isHanded ? inputRequest : nil
  }

  /// The answer of another input is here.
  mutating func finish(_ answer: InputAnswer) {
    if case .handed(let head, _) = state { self.answer(head, answer) }
  }

  /// One report that is written over several lines becomes one line; everything else stays as it came.
  private mutating func joinLines() {
    guard let end = RequestFramer.lineFeed(body.span, from: 0), end < body.count - 1 else { return }
    let none = ReservedKeys([])
    if case .success = RequestScanner.scan(body.span.extracting(0..<end), reserved: none).request { return }
    let whole = RequestScanner.scan(body.span, reserved: none)
    guard case .success = whole.request, whole.followingBytes == 0 else { return }
    // No string has either: it is sound JSON.
    for index in body.indices where body[index] == UInt8(ascii: "\n") || body[index] == UInt8(ascii: "\r") {
      body[index] = UInt8(ascii: " ")
    }
  }

  private mutating func feed(
    _ head: HTTPHead, _ conversation: inout IngestConversation, _ turn: inout WorkTurn, _ now: Int64
  ) -> Bool {
    conversation.forcedAnswerMode = .each
    if let refusal = beginPoll(&conversation) {
      answer(head, refusal)
      return !mustClose
    }
    // Its answers become one response, which can't be sent before all are known; their number is limited.
    var part = turn.withoutUnreadLimit()
    fedBytes = conversation.consume(body.span, from: fedBytes, within: &part, unixMilliseconds: now)
    turn.spend(turn.credit - part.credit)
    guard fedBytes == body.count else { return false }
    conversation.end(unixMilliseconds: now)
    (body, state) = ([], .awaiting(head))
    return false
  }

  // MARK: Answers

  /// Takes the answers of a body whose reports are all settled.
  mutating func collect(from conversation: inout IngestConversation) {
    if case .polling(let head) = state { return poll(head, conversation) }
    guard case .awaiting(let head) = state, conversation.isSettled else { return }
    state = .head
    let (lines, summary) = (conversation.output, conversation.takeSummary())
    conversation.output = []
    if record != nil { return answerRecord(head, lines, summary, &conversation) }
    guard !lines.isEmpty else {
      return answer(head, InputAnswer(Refusal(.badRequest, "the body holds no report")))
    }
    answer(head, summary.onlyRefusal.map { InputAnswer($0, body: lines) } ?? InputAnswer(body: lines))
    if conversation.mustClose { state = .closing }
  }

  private mutating func fail(_ fault: HTTPHead.Fault) {
    var answer = InputAnswer(Refusal(fault.status == 413 ? .payloadTooLarge : .badRequest, fault.message))
    answer.status = fault.status
    if let inputRequest, let input = routes.input {
      refusedRequest = .init(input: input.name(of: inputRequest), status: fault.status)
      answer = input.answer(to: inputRequest, status: fault.status, message: fault.message)
    }
    output += HTTPAnswer.render(answer, keepAlive: false, allow: fault.allow)
    (state, headText, body, inputRequest, record) = (.closing, [], [], nil, nil)
  }

  mutating func answer(_ head: HTTPHead, _ answer: InputAnswer, etag: Int64? = nil) {
    let keepsAlive = head.isKeptAlive && !answer.mustClose
    output += HTTPAnswer.render(answer, keepAlive: keepsAlive, etag: etag)
    (state, record) = (keepsAlive ? .head : .closing, nil)
  }
}
