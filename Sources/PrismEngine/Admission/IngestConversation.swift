public import PrismProtocol

/// One connection's line protocol without its socket: bytes in, batches out to a commit, answers out
/// (docs/ingest-protocol.md).
///
/// Pure: whoever owns it reads and writes, hands the batches to the store in their order, and brings back what became
/// of them in the same order.
public struct IngestConversation: Sendable {
  /// A report whose payload is still arriving, at the end of the open batch's arena.
  private struct Incoming {
    let row: ReportBatch.Row
    let payloadBytes: Int
  }

  public private(set) var session: Session
  private let version: String
  private var framer = RequestFramer()
  private var answers = AnswerQueue()
  private var open: BatchWriter?
  private var incoming: Incoming?
  private var sealed: [ReportBatch] = []
  private var inFlight = Ring<ReportBatch>()
  /// Bytes of `sealed` and `inFlight`.
  private var sealedBytes = 0
  private var tally = IngestTally()
  /// Cost units of the event that is being taken, beside its bytes and its line.
  private var extraCost = 0

  /// Rendered answers that wait to be written.
  public var output: [UInt8] = []
  /// The rest of the input can't be told apart: close once the answers are written.
  public private(set) var mustClose = false
  /// The daemon stops: whatever comes is answered `busy`.
  public var isStopping = false
  /// Somebody follows: refused reports are kept for `takeRefused`.
  public var isFollowed = false
  private var refused: [(name: ReportName, code: RefusalCode)] = []
  /// nil: as the greeting says.
  public var forcedAnswerMode: AnswerMode?

  /// - Parameter version: of the daemon, told in the answer to a greeting.
  public init(session: Session, version: String) {
    (self.session, self.version) = (session, version)
  }

  private var answerMode: AnswerMode { forcedAnswerMode ?? session.greeting.answer }

  /// Bytes of answers that are known and were not taken to be written.
  public var unreadBytes: Int { answers.bytes + output.count }
  /// What the request that is not whole yet will hold at most, from its line to its payload; 0 for a small one.
  public var requestBytes: Int {
    if let incoming {
      return incoming.payloadBytes > Limits.lineBytesMax ? incoming.payloadBytes + 2 * Limits.lineBytesMax : 0
    }
    return framer.heldBytes > Limits.lineBytesMax ? session.rules.lineMemoryBytes : 0
  }
  /// Bytes of a request that is not whole yet.
  public var partialBytes: Int { framer.heldBytes + (incoming == nil ? 0 : open?.bytes ?? 0) }
  /// Bytes of reports whose commit is not settled.
  public var batchBytes: Int { sealedBytes + (incoming == nil ? open?.bytes ?? 0 : 0) }
  public var isWithinRequest: Bool { framer.isWithinRequest }
  /// Nothing is on its way to a commit and no answer is owed.
  public var isSettled: Bool { open == nil && sealed.isEmpty && inFlight.isEmpty && answers.isEmpty }

  public mutating func take(_ rules: AdmissionRules) { session.take(rules) }

  /// Takes the tally of what happened since the last call.
  public mutating func takeTally() -> IngestTally {
    defer { tally = IngestTally() }
    return tally
  }

  /// Takes what was refused since the last call while `isFollowed`.
  public mutating func takeRefused() -> [(name: ReportName, code: RefusalCode)] {
    defer { refused = [] }
    return refused
  }
}

// MARK: - In

extension IngestConversation {
  /// Takes input as far as `turn` goes.
  /// - Parameter unixMilliseconds: now.
  /// - Returns: the position behind what was taken; the rest of `chunk` is to be given again.
  public mutating func consume(
    _ chunk: Span<UInt8>, from start: Int = 0, within turn: inout WorkTurn, unixMilliseconds now: Int64
  ) -> Int {
    var position = start
    let lineBytesMax = session.rules.lineBytesMax
    // At the end of the chunk the framer is asked once more: a payload of 0 bytes ends there.
    while position == chunk.count || turn.goesOn(unreadBytes: unreadBytes) {
      let before = position
      let event = framer.next(chunk, &position, lineBytesMax: lineBytesMax)
      turn.spend(position - before + WorkTurn.Cost.line)
      if event == .starved { break }
      take(event, chunk, position, now)
      turn.spend(extraCost)
      extraCost = 0
    }
    answers.flush(into: &output)
    return position
  }

  private mutating func take(_ event: RequestFramer.Event, _ chunk: Span<UInt8>, _ position: Int, _ now: Int64) {
    switch event {
    case .starved: break
    case .line(let range): take(chunk.extracting(range), followedBy: chunk.count - position, now)
    case .heldLine:
      let line = framer.takeHeld()
      take(line.span, followedBy: chunk.count - position, now)
    case .payload(let range, let isLast):
      open?.appendPayload(chunk, range)
      if isLast { finishIncoming() }
    case .tooLong:
      let line = framer.takeHeld()
      refuse(RequestScanner.refusal(ofTooLong: line.span, bytesMax: session.rules.lineBytesMax))
    case .lost: mustClose = true
    }
  }

  /// The client sends nothing more. A last line counts without its line feed too; a payload must be whole.
  public mutating func end(unixMilliseconds now: Int64) {
    switch framer.end() {
    case .clean: break
    case .heldLine:
      let line = framer.takeHeld()
      take(line.span, followedBy: 0, now)
      if incoming != nil { dropIncoming() }
    case .withinPayload: dropIncoming()
    }
    answers.flush(into: &output)
  }

  private mutating func dropIncoming() {
    if let incoming { open?.drop(incoming.row) }
    incoming = nil
    forgetEmptyBatch()
    refuse(Refusal(.badRequest, "the connection ended within the payload"))
  }

  private mutating func take(_ line: Span<UInt8>, followedBy available: Int, _ now: Int64) {
    if line.isBlank { return }
    let scanned = RequestScanner.scan(line, reserved: session.rules.reserved)
    do throws(Refusal) {
      let request = try scanned.request.get()
      if case .report(let report) = request {
        try take(report, line, followedBy: available, now)
      } else {
        let answer = answer(to: request, line)
        extraCost += WorkTurn.Cost.question + answer.count
        answers.append(answer)
      }
    } catch {
      if isFollowed, case .success(.report(let report)) = scanned.request {
        refuse(error, ReportName(report, in: line))
      } else {
        refuse(error)
      }
      if !framer.skip(scanned.followingBytes) { mustClose = true }
    }
  }

  /// To what is not a report: a refusal of it doesn't count among the reports, and stands in a line of its own.
  private mutating func answer(to request: ScannedRequest, _ line: Span<UInt8>) -> [UInt8] {
    do throws(Refusal) {
      switch request {
      case .hello(let range):
        try session.greet(line.extracting(range))
        return AnswerText.hello(version: version, payloadBytesMax: session.rules.payloadBytesMax)
      case .isGather(let name):
        return AnswerText.isGather(try Admission.isGather(name, in: line, session: &session))
      case .common: return AnswerText.common(session.context.members)
      case .report: return []
      }
    } catch { return AnswerText.refused(error) }
  }

  private mutating func take(
    _ report: ScannedReport, _ line: Span<UInt8>, followedBy available: Int, _ now: Int64
  ) throws(Refusal) {
    if isStopping { throw Self.stopping }
    let admitted = try Admission.decide(report, in: line, session: &session, unixMilliseconds: now)
    if case .rewritten = admitted.body { extraCost += WorkTurn.Cost.question + admitted.metaBytes }
    if open?.takes(admitted, context: session.context) == false { seal() }
    switch report.payload {
    case .following(let bytes):
      if bytes > available { seal() }  // what is complete needn't wait for this payload
      let row = writing(admitted) { $0.begin(admitted, report, in: line, payloadBytes: bytes) }
      incoming = Incoming(row: row, payloadBytes: bytes)
      framer.expectPayload(bytes)
    case .none, .base64:
      let result = writing(admitted) { writer -> Result<Void, Refusal> in
        do throws(Refusal) { return .success(try writer.append(admitted, report, in: line)) } catch {
          return .failure(error)
        }
      }
      forgetEmptyBatch()
      try result.get()
      expectRow()
    }
  }

  private static let stopping = Refusal(.busy, "the daemon is stopping; report again", retryMilliseconds: 1000)

  /// Lets `body` change the open batch where it stands, without a copy.
  private mutating func writing<Result>(_ admitted: Admission.Admitted, _ body: (inout BatchWriter) -> Result) -> Result
  {
    var writer =
      open
      ?? BatchWriter(
        namespace: admitted.namespace, userID: session.peer.userID, context: session.context)
    open = nil
    defer { open = writer }
    return body(&writer)
  }

  /// Drops an open batch whose only report was refused: nothing would ever commit it, so its connection would never be
  /// settled.
  private mutating func forgetEmptyBatch() {
    if open?.batch.rows.isEmpty == true { open = nil }
  }

  private mutating func finishIncoming() {
    guard let incoming else { return }
    open?.finish(incoming.row, payloadBytes: incoming.payloadBytes)
    self.incoming = nil
    expectRow()
  }

  private mutating func expectRow() {
    tally.received += 1
    answers.expectRow(answerMode)
    if open?.isFull == true { seal() }
  }

  private mutating func refuse(
    _ refusal: Refusal, _ name: ReportName = ReportName(namespace: nil, type: nil, reportID: nil)
  ) {
    if isFollowed { refused.append((name, refusal.code)) }
    extraCost += WorkTurn.Cost.refusal
    tally.received += 1
    tally.count([refusal])
    answers.refuse(refusal, answerMode)
  }
}

// MARK: - To the commit and back

extension IngestConversation {
  private mutating func seal() {
    guard incoming == nil, let writer = open else { return }
    open = nil
    guard !writer.batch.rows.isEmpty else { return }
    sealedBytes += writer.bytes
    sealed.append(writer.batch)
  }

  /// Whatever is complete, to be committed in this order.
  public mutating func takeBatches() -> [ReportBatch] {
    seal()
    defer { sealed = [] }
    for batch in sealed { inFlight.append(batch) }
    return sealed
  }

  /// The oldest batch that was taken is settled. - Parameter outcome: nil where `failure` says why none of it was.
  public mutating func settle(_ outcome: BatchOutcome?, failure: Refusal?) {
    guard let batch = inFlight.removeFirst() else { return }
    sealedBytes -= BatchWriter.bytes(of: batch)
    let settled: SettledBatch
    if let outcome {
      settled = SettledBatch(batch, outcome)
    } else {
      settled = SettledBatch(batch, failure: failure ?? Refusal(.internal, "the store gave no answer"))
    }
    let refusals = settled.refusals
    tally.count(refusals)
    tally.stored += batch.rows.count - refusals.count
    answers.settle(settled, into: &output)
  }

  /// Call it after the last `settle` of a commit: one cumulative line covers all that it settled.
  public mutating func flushAnswers() { answers.flush(into: &output) }
}

extension Span<UInt8> {
  fileprivate var isBlank: Bool {
    for index in indices {
      let byte = self[index]
      guard byte == 0x20 || byte == 0x0D || byte == 0x09 else { return false }
    }
    return true
  }
}
