public import PrismBase
public import PrismControl
public import PrismProtocol

/// One connection's line protocol without its socket: bytes in, batches out to a commit, answers out
/// (docs/ingest-protocol.md). It is an adapter: the framer and the scanner find reports in the bytes, `Intake` takes them,
/// and `AnswerQueue` renders what became of them.
///
/// Pure: its owner reads and writes, hands the batches to the store in their order, and brings back the outcomes in the
/// same order.
public struct IngestConversation: Sendable {
  /// The rules, the peer and the greeting.
  public private(set) var session: Session
  private let version: String
  private var framer = RequestFramer()
  private var answers = AnswerQueue()
  private var intake = Intake()
  var watches: Watches
  /// Cost units of the event that is being taken, beside its bytes and its line.
  private var extraCost = 0

  /// Rendered answers that wait to be written.
  public var output: [UInt8] = []
  /// The rest of the input can't be split into requests: close once the answers are written.
  public private(set) var mustClose = false
  /// The daemon stops: every report is answered `busy`.
  public var isStopping = false
  private var refused = FollowedRefusals()
  /// The client reads its answers.
  public var isRead: Bool {
    get { answers.isRead }
    set { answers.isRead = newValue }
  }
  /// nil: as the greeting says.
  public var forcedAnswerMode: AnswerMode?

  /// - Parameter version: of the daemon, for the answer to a greeting.
  /// - Parameter places: the watches of all connections.
  public init(session: Session, version: String, places: WatchPlaces = WatchPlaces()) {
    (self.session, self.version, watches) = (session, version, Watches(places))
  }

  private var answerMode: AnswerMode { forcedAnswerMode ?? session.greeting.answer }

  /// Bytes of answers that are known and were not taken to be written.
  public var unreadBytes: Int { answers.bytes + output.count }
  /// The most that the request that is not whole yet will hold, from its line to its payload; 0 for a small one.
  public var requestBytes: Int {
    if let bytes = intake.awaitedPayloadBytes {
      return bytes > Limits.lineBytesMax ? bytes + 2 * Limits.lineBytesMax : 0
    }
    return framer.heldBytes > Limits.lineBytesMax ? session.rules.lineMemoryBytes : 0
  }
  /// Bytes of a request that is not whole yet.
  public var partialBytes: Int { framer.heldBytes + intake.partialBytes }
  /// Its memory beside reports before their commit.
  public var memoryBytes: Int {
    // In place: at each look the whole of it would be copied.
    mutating get { partialBytes + unreadBytes + session.memoryBytes + watches.bytes }
  }
  /// Bytes of reports whose commit is not settled.
  public var batchBytes: Int { intake.batchBytes }
  /// Whether a request has begun and is not whole.
  public var isWithinRequest: Bool { framer.isWithinRequest }
  /// Nothing is on its way to a commit and no answer is owed.
  public var isSettled: Bool { intake.isSettled && answers.isEmpty }

  /// A reader follows the feed: refused reports are kept for `takeRefused`.
  public var isFollowed: Bool {
    get { refused.areKept }
    set { refused.areKept = newValue }
  }

  /// The client wants to know of changes of the configuration, or of tables of records.
  public var isWatching: Bool { !watches.isEmpty }

  /// Judges reports by `rules` from now on.
  public mutating func take(_ rules: AdmissionRules) {
    if rules !== session.rules { watches.rulesChanged() }
    session.take(rules)
  }

  /// The reports from now on say that the clock is set so.
  public mutating func take(_ clock: ClockSetting?) { session.take(clock) }

  /// Answers with the changes of the namespaces that the client watches. Call it when all answers have been written: a client
  /// that does not read gets the last state of each namespace, and not all between.
  /// - Returns: whether there is something to write.
  public mutating func answerChanges() -> Bool {
    guard watches.mayHaveChanges, unreadBytes == 0 else { return false }
    for line in watches.takeChanges(&session) { answers.append(line) }
    answers.flush(into: &output)
    return !output.isEmpty
  }

  /// The program after a greeting; nil: it has not greeted since the last call.
  public mutating func takeProgram() -> ProgramSession?? { session.takeProgram() }

  /// Takes the tally of what happened since the last call.
  public mutating func takeTally() -> IngestTally { intake.takeTally() }

  /// Takes what was refused since the last call while `isFollowed`.
  public mutating func takeRefused() -> [TailReport] { refused.take() }

  /// Takes what the requests since the last call were answered, all in all.
  public mutating func takeSummary() -> AnswerSummary { answers.takeSummary() }

  // MARK: In

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
      intake.appendPayload(chunk, range)
      if isLast, intake.finishPayload() { answers.expectRow(answerMode) }
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
      if intake.awaitsPayload { dropPayload() }
    case .withinPayload: dropPayload()
    }
    answers.flush(into: &output)
  }

  private mutating func dropPayload() {
    intake.dropPayload()
    refuse(Refusal(.badRequest, "the connection ended within the payload"))
  }

  private mutating func take(_ line: Span<UInt8>, followedBy available: Int, _ now: Int64) {
    if line.isBlank { return }
    let scanned = RequestScanner.scan(line, reserved: session.rules.reserved)
    do throws(Refusal) {
      let request = try scanned.request.get()
      if case .report(let report) = request {
        try take(report, line, followedBy: available, now)
      } else if case .record(let verb, let range) = request {
        ask(verb, line.extracting(range))
      } else {
        var (answer, refusal) = answer(to: request, line)
        extraCost += WorkTurn.Cost.question + answer.count
        if refusal == nil, let full = fullBody(answer.count) { (answer, refusal) = (AnswerText.refused(full), full) }
        answers.append(answer, refusal)
      }
    } catch {
      if isFollowed, case .success(.report(let report)) = scanned.request {
        refuse(error, TailReport(report, in: line))
      } else {
        refuse(error)
      }
      if !framer.skip(scanned.followingBytes) { mustClose = true }
    }
  }

  /// Answers what is not a report: a refusal of it does not count among the reports, and has a line of its own.
  private mutating func answer(to request: ScannedRequest, _ line: Span<UInt8>) -> (text: [UInt8], refusal: Refusal?) {
    do throws(Refusal) {
      switch request {
      case .hello(let range):
        try session.greet(line.extracting(range))
        return (AnswerText.hello(version: version, payloadBytesMax: session.rules.payloadBytesMax), nil)
      case .isGather(let name):
        return (AnswerText.isGather(try Admission.isGather(name, in: line, session: &session)), nil)
      case .common: return (AnswerText.common(session.context.members), nil)
      case .report, .record: return ([], nil)
      }
    } catch { return (AnswerText.refused(error), error) }
  }

  /// A refused request does not count among the reports.
  private mutating func ask(_ verb: RecordVerb, _ object: Span<UInt8>) {
    do throws(Refusal) {
      // Over HTTP the mode is forced, and an exchange ends with its answers.
      guard verb != .watch || forcedAnswerMode == nil else {
        throw Refusal(.badRequest, "`watch` needs a connection without HTTP")
      }
      extraCost += WorkTurn.Cost.question + object.count
      let question = try RecordQuestion(verb, object)
      if question.isOfSwitches {
        return answers.append(AnswerText.switches(try watches.begin(question, &session), isChange: false))
      }
      if isStopping { throw Refusal.stopping }
      let request = try session.request(question)
      if let full = fullBody(request.answerBytesMax) { throw full }
      extraCost += request.answerBytesMax
      if verb == .watch { try watches.expect(request.key, userID: session.peer.accountID) }
      intake.take(request, session: session)
      answers.expectRecord(answerBytes: request.answerBytesMax)
    } catch { answers.append(AnswerText.refused(error), error) }
  }

  /// The refusal of a question whose answer would be too much for one response, which is sent when it is whole.
  private func fullBody(_ answerBytes: Int) -> Refusal? {
    let held = answers.questionBytes
    guard forcedAnswerMode != nil, held > 0, held + answerBytes > Limits.unreadBytesMax else { return nil }
    return Refusal(
      .payloadTooLarge,
      "the answers to the questions of one body may take \(Limits.unreadBytesMax) bytes, and this one would take more: "
        + "ask it in another request")
  }

  private mutating func take(
    _ report: ScannedReport, _ line: Span<UInt8>, followedBy available: Int, _ now: Int64
  ) throws(Refusal) {
    if isStopping { throw Refusal.stopping }
    let taken = try intake.take(
      report, in: line, available: available, session: &session, unixMilliseconds: now)
    if taken.rewrittenBytes > 0 { extraCost += WorkTurn.Cost.question + taken.rewrittenBytes }
    if taken.isWhole {
      answers.expectRow(answerMode)
      if case .following(let bytes) = report.payload, !framer.skip(bytes) { mustClose = true }
    } else if let bytes = intake.awaitedPayloadBytes {
      framer.expectPayload(bytes)
    }
  }

  private mutating func refuse(_ refusal: Refusal, _ report: TailReport = TailReport()) {
    refused.note(report, refusal.code)
    extraCost += WorkTurn.Cost.refusal
    intake.refuse(refusal)
    answers.refuse(refusal, answerMode)
  }

  // MARK: To the commit and back

  /// Takes every complete batch, to be committed in this order.
  public mutating func takeBatches() -> [ReportBatch] { intake.takeBatches() }

  /// Settles the oldest batch that was taken.
  /// - Parameter outcome: nil if nothing of the batch was taken; `failure` says why.
  public mutating func settle(_ outcome: BatchOutcome?, failure: Refusal?) {
    guard let settled = intake.settle(outcome, failure: failure) else { return }
    if let request = settled.recordRequest, case .watch = request.action {
      let answer: Int64? = if case .watching(_, _, let generation)? = settled.record { generation } else { nil }
      watches.began(request.key, generation: answer)
    }
    answers.settle(settled, into: &output)
  }

  /// Call it after the last `settle` of a commit: one cumulative line covers all that it settled.
  public mutating func flushAnswers() { answers.flush(into: &output) }

  // MARK: Changes of tables on their way to the client (docs/records.md)

  /// A commit changed a table. - Returns: whether this connection watches it, and is to be advanced.
  public mutating func take(_ change: RecordTableChange) -> Bool { watches.note(change) }

  /// Keeps changes of a table for `hasChanged`; no line is sent of them. - Throws: `bad_request`, `busy`.
  public mutating func beginPoll(_ table: WatchedTable.Key) throws(Refusal) {
    try watches.expect(table, userID: session.peer.accountID, isSilent: true)
  }

  /// Whether a commit has changed the table after `generation`, since `beginPoll`.
  public func hasChanged(_ table: WatchedTable.Key, since generation: Int64) -> Bool {
    watches.hasChanged(table, since: generation)
  }

  /// Its changes are not kept any more.
  public mutating func endPoll(_ table: WatchedTable.Key) { watches.end(table) }
}

extension Refusal {
  /// Of a report that comes while the daemon stops.
  public static let stopping = Refusal(.busy, "the daemon is stopping; report again", retryMilliseconds: 1000)
}

extension RecordRequest {
  var key: WatchedTable.Key { WatchedTable.Key(namespace: namespace, table: table.name) }
}
