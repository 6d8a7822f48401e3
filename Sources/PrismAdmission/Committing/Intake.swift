import PrismProtocol

/// Reports of any protocol on their way from an input to their commits. Each is admitted, becomes a row of a batch, and is
/// answered as a value (`CommittedBatch`). An input keeps one for each connection, or for each group. Pure.
///
/// Its batches are committed in the order in which `takeBatches` gives them, and `settle` takes their outcomes in it.
struct Intake: Sendable {
  /// The result of `take` for a report that was not refused.
  struct Taken: Sendable {
    /// false: its payload is still to come, by `appendPayload`. true with a payload that follows: it is not wanted.
    let isWhole: Bool
    /// Bytes of a meta that had to be read by a filter or written again, because it collided with the common information; 0
    /// in most cases.
    let rewrittenBytes: Int
  }

  /// A report whose payload is still arriving, at the end of the open batch's arena.
  private struct Incoming {
    let row: ReportBatch.Row
    let payloadBytes: Int
    let mark: ReportBatch.Mark?
  }

  /// The open batch, if there is one. To look at one member of an Optional copies all of it; an element is looked at in its
  /// place.
  private var open: [BatchWriter] = []
  private var incoming: Incoming?
  private var sealed: [ReportBatch] = []
  private var inFlight = Ring<ReportBatch>()
  /// Bytes of `sealed` and `inFlight`.
  private var sealedBytes = 0
  private var tally = IngestTally()

  /// Whether the payload of the last report is not whole yet.
  var awaitsPayload: Bool { incoming != nil }
  /// Bytes of that payload in all; nil if no report waits for its payload.
  var awaitedPayloadBytes: Int? { incoming?.payloadBytes }
  /// Bytes of the open batch while a payload arrives.
  var partialBytes: Int { incoming == nil ? 0 : openBytes }
  /// Bytes of reports whose commit is not settled.
  var batchBytes: Int { sealedBytes + (incoming == nil ? openBytes : 0) }
  private var openBytes: Int { open.isEmpty ? 0 : open[0].bytes }
  /// Nothing is on its way to a commit.
  var isSettled: Bool { open.isEmpty && sealed.isEmpty && inFlight.isEmpty }

  /// Takes the tally of what happened since the last call.
  mutating func takeTally() -> IngestTally {
    defer { tally = IngestTally() }
    return tally
  }

  // MARK: In

  /// Admits a report and appends it to the open batch.
  /// - Parameter report: its parts are ranges of `text`.
  /// - Parameter available: bytes of a following payload that are here already; what is complete does not wait for a
  ///   payload that is not.
  /// - Parameter unixMilliseconds: now.
  /// - Throws: the refusal; then nothing is taken, and `refuse` counts it.
  mutating func take(
    _ report: ScannedReport, in text: Span<UInt8>, available: Int, session: inout Session, unixMilliseconds now: Int64
  ) throws(Refusal) -> Taken {
    let admitted = try Admission.decide(report, in: text, session: &session, unixMilliseconds: now)
    var rewrittenBytes = admitted.filteredBytes
    if case .rewritten = admitted.body { rewrittenBytes += admitted.metaBytes }
    if !open.isEmpty, !open[0].takes(admitted, context: session.context) { seal() }
    switch admitted.leavesPayloadOut ? .none : report.payload {
    case .following(let bytes):
      if bytes > available { seal() }
      openBatch(for: admitted, &session)
      let row = open[0].begin(admitted, report, in: text, payloadBytes: bytes)
      incoming = Incoming(row: row, payloadBytes: bytes, mark: admitted.mark)
      return Taken(isWhole: false, rewrittenBytes: rewrittenBytes)
    case .none, .base64:
      openBatch(for: admitted, &session)
      defer { forgetEmptyBatch() }
      try open[0].append(admitted, report, in: text)
      if admitted.leavesPayloadOut { tally.leftOutPayloads += 1 }
      countRow()
      return Taken(isWhole: true, rewrittenBytes: rewrittenBytes)
    }
  }

  /// Takes a request about records, behind the reports before it.
  mutating func take(_ request: RecordRequest, session: Session) {
    seal()
    var batch = ReportBatch(
      namespace: request.namespace, userID: session.peer.accountID, context: CommonContext(members: []),
      quota: StoreQuota(bytesMax: .max, evictsOldest: false))
    batch.record = request
    sealedBytes += BatchWriter.bytes(of: batch)
    sealed.append(batch)
  }

  /// Appends a piece of the payload of the last report.
  mutating func appendPayload(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    if !open.isEmpty { open[0].appendPayload(bytes, range) }
  }

  /// The payload is whole. - Returns: false if no report waited for one.
  mutating func finishPayload() -> Bool {
    guard let incoming else { return false }
    open[0].finish(incoming.row, payloadBytes: incoming.payloadBytes, mark: incoming.mark)
    self.incoming = nil
    countRow()
    return true
  }

  /// Drops the report whose payload does not come whole; `refuse` counts it.
  mutating func dropPayload() {
    if let incoming { open[0].drop(incoming.row) }
    incoming = nil
    forgetEmptyBatch()
  }

  /// Counts a report that was refused before it came to a commit.
  mutating func refuse(_ refusal: Refusal) {
    tally.refuse(refusal)
  }

  /// Counts a report that was taken under another type than its own.
  mutating func countOtherType() { tally.otherTypes += 1 }

  private mutating func countRow() {
    tally.received += 1
    if open[0].isFull { seal() }
  }

  /// - Parameter session: `inout`, so that nothing of it is copied.
  private mutating func openBatch(for admitted: Admission.Admitted, _ session: inout Session) {
    guard open.isEmpty else { return }
    open.append(
      BatchWriter(
        namespace: admitted.namespace, userID: session.peer.accountID, context: session.context, app: session.app))
  }

  /// Drops an open batch whose only report was refused: nothing would ever commit it, so its connection would never be
  /// settled.
  private mutating func forgetEmptyBatch() {
    if !open.isEmpty, open[0].batch.rows.isEmpty { open.removeAll(keepingCapacity: true) }
  }

  // MARK: To the commit and back

  private mutating func seal() {
    guard incoming == nil, let writer = open.popLast() else { return }
    guard !writer.batch.rows.isEmpty else { return }
    sealedBytes += writer.bytes
    sealed.append(writer.batch)
  }

  /// Takes every complete batch, to be committed in this order.
  mutating func takeBatches() -> [ReportBatch] {
    seal()
    defer { sealed = [] }
    for batch in sealed { inFlight.append(batch) }
    return sealed
  }

  /// Settles the oldest batch that was taken.
  /// - Parameter outcome: nil if nothing of the batch was taken; `failure` says why.
  /// - Returns: the answers to its reports; nil if no batch is in flight.
  mutating func settle(_ outcome: BatchOutcome?, failure: Refusal?) -> CommittedBatch? {
    guard let batch = inFlight.removeFirst() else { return nil }
    sealedBytes -= BatchWriter.bytes(of: batch)
    let settled: CommittedBatch
    if let outcome {
      settled = CommittedBatch(batch, outcome)
    } else {
      settled = CommittedBatch(batch, failure: failure ?? Refusal(.internal, "the store gave no answer"))
    }
    let refusals = settled.refusals
    tally.count(refusals)
    tally.sampled += settled.sampledCount
    tally.repeated += settled.repeatedCount
    tally.stored += batch.rows.count - refusals.count - settled.sampledCount
    return settled
  }
}
