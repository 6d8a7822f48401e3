import PrismAdmission
import PrismBase
import PrismInputs
import PrismProtocol

/// One client's connection; only touched on the ingest server's queue.
final class IngestConnection {
  /// Why nothing is read from it for now.
  struct Pauses: OptionSet {
    let rawValue: Int
    /// Its user's share of the memory is used up.
    static let budget = Pauses(rawValue: 1)
    /// The client doesn't read its answers.
    static let output = Pauses(rawValue: 2)
    /// A request over HTTP waits for its commit.
    static let exchange = Pauses(rawValue: 4)
    /// Nothing more comes.
    static let ended = Pauses(rawValue: 8)
  }

  let id: Int
  let entrance: Entrance
  let userID: UInt32
  let descriptor: SharedDescriptor
  /// nil until the first bytes come: a connection that is only open costs little.
  var conversation: InPlace<IngestConversation>?
  /// nil: the line protocol, or not decided yet.
  var http: InPlace<HTTPExchange>?
  /// Another input's protocol; nil: lines or HTTP.
  private(set) var stream: InPlace<any MessageStream>?
  private(set) var owed = OwedAnswers()
  private(set) var isStreamEnded = false, hasSpoken = false
  /// The client's protocol, if it is not taken here: nothing more is read of it.
  private(set) var foreign: ForeignProtocol?
  /// It was counted, and shown to those who follow.
  var isForeignTold = false
  /// The paths of an HTTP request that comes.
  var routes = HTTPRoutes()
  private var isProtocolKnown = false
  /// The first line as far as it came, while it may still be HTTP's.
  private(set) var opening: [UInt8] = []
  /// Bytes that were read and not processed yet, from `heldStart` on.
  private var held: [UInt8] = []
  private var heldStart = 0

  var pauses: Pauses = [] { didSet { updateWatch() } }
  /// When it is closed unless its request goes on before, on the `uptime` clock.
  var inputDeadline: Duration?
  /// When it is closed unless the client reads before.
  private(set) var outputDeadline: Duration?
  /// When it is closed, whichever comes first.
  var deadline: Duration? {
    guard let inputDeadline, let outputDeadline else { return inputDeadline ?? outputDeadline }
    return min(inputDeadline, outputDeadline)
  }
  var isWaitingForBudget = false
  /// It has reports that the next commit may take.
  var isUnsealed = false
  /// It is watched no more; what was read of it is committed all the same.
  private(set) var isGone = false
  private(set) var isWriteShut = false
  /// The client reads no answers any more: they are dropped. Its input is read to the end.
  private var peerClosedRead = false

  private var watch: SocketLoop.Watch?
  private var outbound: [UInt8] = []
  private var sentBytes = 0

  init(id: Int, entrance: Entrance = .reports, userID: UInt32, descriptor: SharedDescriptor) {
    (self.id, self.entrance, self.userID, self.descriptor) = (id, entrance, userID, descriptor)
  }

  /// Speaks another input's protocol. Call it before anything is read.
  func speak(_ stream: any MessageStream) { (self.stream, isProtocolKnown) = (InPlace(stream), true) }

  /// Begins to be watched. Call it once; `close` ends it. - Returns: false where the kernel has no room for it.
  func activate(in loop: SocketLoop) -> Bool {
    watch = loop.watch(descriptor.number, id: id)
    return watch != nil
  }

  var wantsToRead: Bool { watch?.reads == true }
  var wantsToWrite: Bool { watch?.writes == true }

  func close() {
    let isSent = !isHanded && unsentBytes == 0 && !peerClosedRead && !descriptor.isLost(isAnswered: true)
    owed.end(isSent && (pauses.contains(.ended) || descriptor.isDrained) ? .received : .lost)
    isGone = true
    watch?.end()
    watch = nil
    (outbound, sentBytes, held, heldStart) = ([], 0, [], 0)
    (inputDeadline, outputDeadline) = (nil, nil)
  }

  private func updateWatch() { watch?.set(reads: pauses.isEmpty, writes: unsentBytes > 0) }

  // MARK: Out

  var unsentBytes: Int { outbound.count - sentBytes }
  /// Answers that the client has not taken yet.
  var unreadBytes: Int { unsentBytes + (http == nil ? conversation?.value.unreadBytes ?? 0 : 0) }

  /// Sends what the conversation has ready, as far as the client takes it.
  /// - Parameter timeout: the time within which the client must read some of it.
  func send(now: @autoclosure () -> Duration, timeout: Duration) {
    if isQuiet { return }
    collect()
    guard !isGone else {
      outbound = []
      return
    }
    var isTaken = write()
    if unsentBytes == 0, conversation?.value.answerChanges() == true {
      collect()
      isTaken = write() || isTaken
    }
    if unsentBytes == 0 {
      outputDeadline = nil
    } else if isTaken || outputDeadline == nil {
      outputDeadline = now() + timeout
    }
    let isBehind = unreadBytes > Limits.unreadBytesMax
    if isBehind != pauses.contains(.output) { pauses.formSymmetricDifference(.output) } else { updateWatch() }
  }

  /// There is nothing to send, and there was nothing when it last sent.
  private var isQuiet: Bool {
    stream == nil && http == nil && outputDeadline == nil && unreadBytes == 0 && !pauses.contains(.output)
      && conversation?.value.isWatching != true
  }

  /// - Returns: whether the client took any.
  private func write() -> Bool {
    let before = sentBytes
    while unsentBytes > 0 && !peerClosedRead {
      guard let count = descriptor.write(outbound[sentBytes...]) else {
        peerClosedRead = true
        conversation?.value.isRead = false
        break
      }
      if count == 0 { break }
      sentBytes += count
    }
    defer { if unsentBytes == 0 || peerClosedRead { (outbound, sentBytes) = ([], 0) } }
    return sentBytes > before
  }

  private func collect() {
    if let stream {
      outbound += stream.value.takeOutput()
    } else if let http {
      if let conversation { http.value.collect(from: &conversation.value) }
      outbound += http.value.takeOutput()
      updateExchange()
    } else if let conversation {
      if outbound.isEmpty {
        swap(&outbound, &conversation.value.output)
      } else {
        outbound += conversation.value.output
        conversation.value.output.removeAll(keepingCapacity: true)
      }
    }
  }

  /// Says to the client that no more answers come.
  func shutWriting() {
    guard !isWriteShut, !isGone else { return }
    isWriteShut = true
    descriptor.shutWriting()
  }

  // MARK: In

  /// Something was read, or arrived in a body, that is to be taken.
  var hasInput: Bool { heldStart < held.count || http?.value.isFeeding == true }

  /// Takes what was read, as far as `turn` goes, and holds the rest.
  func consume(_ chunk: Span<UInt8>, within turn: inout WorkTurn, unixMilliseconds now: Int64) {
    guard isProtocolKnown else {
      if open(chunk) { consumeHeld(within: &turn, unixMilliseconds: now) }
      return
    }
    let used = take(chunk, from: 0, &turn, now)
    if used < chunk.count { held.append(copying: chunk, used..<chunk.count) }
  }

  /// The client sent something, or reset the connection.
  func hear(isReset: Bool) { if isReset { owed.end(.lost) } else { owed.hear() } }

  /// Goes on with what was read before.
  func consumeHeld(within turn: inout WorkTurn, unixMilliseconds now: Int64) {
    var input: [UInt8] = []
    swap(&input, &held)  // so that nothing else can touch it meanwhile
    heldStart = take(input.span, from: heldStart, &turn, now)
    if heldStart < input.count { swap(&input, &held) } else { heldStart = 0 }
  }

  private func take(_ chunk: Span<UInt8>, from start: Int, _ turn: inout WorkTurn, _ now: Int64) -> Int {
    if foreign != nil { return chunk.count }
    if let stream { return takeMessages(stream, chunk, from: start, &turn) }
    guard let conversation else { return chunk.count }
    guard let http else {
      return conversation.value.consume(chunk, from: start, within: &turn, unixMilliseconds: now)
    }
    defer { updateExchange() }
    return http.value.consume(chunk, from: start, &conversation.value, within: &turn, unixMilliseconds: now)
  }

  /// The first byte decides the protocol, except that a letter may also begin a line that is no JSON. Then the end of
  /// the line decides, so that a mistake on the first line is not answered in a protocol that the client doesn't speak.
  /// - Returns: whether the protocol is known; what came is held then.
  private func open(_ chunk: Span<UInt8>) -> Bool {
    let before = opening.count
    opening.append(copying: chunk, chunk.indices)
    guard let first = opening.first else { return false }
    if let foreign = ForeignProtocol(opening[...]) {
      refuse(foreign)
      return false
    }
    if first.isASCIILetter || first == UInt8(ascii: "<") || first.isASCIIDigit {
      let end = opening[before...].firstIndex(of: UInt8(ascii: "\n"))
      guard end != nil || opening.count > HTTPHead.bytesMax else { return false }
      if end.map({ HTTPHead.isRequestLine(opening[..<$0]) }) != false {
        http = InPlace(HTTPExchange(routes: routes))
      }
    }
    if routes.isAlone, http == nil {
      refuse(.other)
      return false
    }
    beginProtocol()
    return true
  }

  /// Answers a protocol that is not taken here in one line, and ends the connection.
  private func refuse(_ foreign: ForeignProtocol) {
    self.foreign = foreign
    (isProtocolKnown, opening, held, heldStart) = (true, [], [], 0)
    if stream == nil { outbound += AnswerText.refused(foreign.refusal) }
  }

  private func beginProtocol() {
    isProtocolKnown = true
    (held, heldStart, opening) = (opening, 0, [])
  }

  func endInput(unixMilliseconds now: Int64) {
    if !isProtocolKnown {
      if routes.isAlone, !opening.isEmpty { refuse(.other) }
      beginProtocol()
      var turn = WorkTurn.unbounded
      consumeHeld(within: &turn, unixMilliseconds: now)
    }
    if let stream {
      stream.value.end()
      isStreamEnded = true
    } else if let conversation {
      if let http {
        http.value.end(&conversation.value, unixMilliseconds: now)
      } else {
        conversation.value.end(unixMilliseconds: now)
      }
    }
    pauses.insert(.ended)
  }

  private func takeMessages(
    _ stream: InPlace<any MessageStream>, _ chunk: Span<UInt8>, from start: Int, _ turn: inout WorkTurn
  ) -> Int {
    guard owed.handedBytes == nil else { return start }
    if isStreamEnded { return chunk.count }
    let end = stream.value.consume(chunk, from: start)
    turn.spend(2 * (end - start) + WorkTurn.Cost.line)
    if stream.value.mustClose, !hasSpoken, !stream.value.isTooLarge {
      var opening: [UInt8] = []
      opening.append(copying: chunk, start..<min(chunk.count, start + ForeignProtocol.openingBytesMax))
      refuse(ForeignProtocol(opening[...]).flatMap { $0 == .msgpack ? nil : $0 } ?? .other)
    }
    if stream.value.hasMessage { hasSpoken = true }
    return end
  }

  /// Takes the request that another input is to answer.
  func takeRequest(_ rules: AdmissionRules) -> InputRequest? {
    guard owed.handedBytes == nil, let message = stream?.value.takeMessage() else {
      var request = http?.value.takeRequest()
      if request != nil { request?.receipt = owed.begin(descriptor) }
      return request
    }
    var request = InputRequest(body: message)
    request.reservedBytes = HTTPRoutes.heldBytes(message, isPacked: false, rules)
    request.receipt = owed.begin(descriptor)
    owed.handedBytes = request.reservedBytes
    updateExchange()
    return request
  }

  /// Another input has a request of the connection.
  var isHanded: Bool { owed.handedBytes != nil || http?.value.isHanded == true }

  func finish(_ answer: InputAnswer) {
    let hasMore = heldStart < held.count || stream?.value.heldBytes ?? 0 > 0
    owed.answer(hasInput: hasMore || SharedDescriptor.peek(descriptor.number) != nil)
    if owed.handedBytes != nil {
      owed.handedBytes = nil
      outbound += answer.body
      isStreamEnded = isStreamEnded || answer.mustClose
    }
    http?.value.finish(answer)
    updateExchange()
  }

  /// A request of another input that was refused before it was whole; the connection ends with it.
  var refusedRequest: IngestCounters.InputResult? {
    stream?.value.isTooLarge == true ? .init(input: ForwardInput.name, status: 413) : http?.value.refusedRequest
  }

  private func updateExchange() {
    let isAwaiting = owed.handedBytes != nil || http?.value.isAwaitingAnswers == true
    if isAwaiting != pauses.contains(.exchange) { pauses.formSymmetricDifference(.exchange) }
  }

  /// Its memory beside reports before their commit.
  var heldBytes: Int {
    let text =
      opening.count + held.count + outbound.count + (http?.value.heldBytes ?? 0)
      + (stream?.value.heldBytes ?? 0) + (owed.handedBytes ?? 0)
    return text + (conversation?.value.memoryBytes ?? 0)
  }

  /// The memory that an incomplete large request needs in all.
  var requestBytes: Int {
    guard let conversation else { return 0 }
    if let stream { return requestBytes(stream.value, conversation.value.session.rules) }
    return http?.value.requestBytes(conversation.value.session.rules) ?? conversation.value.requestBytes
  }

  private func requestBytes(_ stream: any MessageStream, _ rules: AdmissionRules) -> Int {
    if let handedBytes = owed.handedBytes { return handedBytes }
    guard !stream.hasMessage, stream.heldBytes > 0 else { return 0 }
    if let bytes = stream.messageBytes { return HTTPRoutes.requestBytes(bytes, isPacked: false, rules) }
    return stream.heldBytes > Limits.lineBytesMax ? rules.requestBytesMax : 0
  }
}
