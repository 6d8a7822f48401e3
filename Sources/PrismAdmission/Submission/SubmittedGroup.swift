public import PrismControl
public import PrismProtocol

/// A group on its way: admitted report by report, then batches for one commit, then an answer for each submission. Pure.
public struct SubmittedGroup: Sendable {
  private var group: SubmissionGroup
  private var intake = Intake()
  /// By submission, as far as they were read: why it was refused before its commit; nil: it is a row of a batch.
  private var refusals: [Refusal?] = []
  private var refused = FollowedRefusals()

  /// Nothing of `group` is admitted yet.
  public init(_ group: SubmissionGroup) {
    self.group = group
    refusals.reserveCapacity(group.submissions.count)
  }

  /// The user that is charged.
  public var userID: UInt32 { group.userID }
  /// Its memory is charged to the connection that its request came from.
  public var isReserved: Bool { group.isReserved }
  /// A reader follows the feed: refused reports are kept for `takeRefused`.
  public var isFollowed: Bool {
    get { refused.areKept }
    set { refused.areKept = newValue }
  }

  /// Bytes that it holds: what is not admitted yet, and batches until they are settled.
  public var bytes: Int { group.bytes + batchBytes }
  /// Bytes of reports whose commit is not settled.
  public var batchBytes: Int { intake.batchBytes }

  /// Admits reports as far as `turn` goes.
  /// - Parameter unixMilliseconds: now.
  /// - Returns: whether all are admitted.
  public mutating func admit(
    within turn: inout WorkTurn, _ rules: AdmissionRules, _ host: HostFacts, unixMilliseconds now: Int64
  ) -> Bool {
    while refusals.count < group.submissions.count {
      guard turn.goesOn(unreadBytes: 0) else { return false }
      let submission = group.submissions[refusals.count]
      turn.spend(submission.bytes + WorkTurn.Cost.line)
      take(submission, &turn, rules, host, now)
    }
    group.submissions = []
    return true
  }

  private mutating func take(
    _ submission: Submission, _ turn: inout WorkTurn, _ rules: AdmissionRules, _ host: HostFacts, _ now: Int64
  ) {
    var intake = Intake()
    swap(&intake, &self.intake)  // so that nothing of it is copied
    defer { swap(&intake, &self.intake) }
    do throws(Refusal) {
      let rewrittenBytes = try submission.source.withSession(rules, host: host) { (session) throws(Refusal) in
        try intake.take(mending: submission, session: &session, unixMilliseconds: now)
      }
      if rewrittenBytes > 0 { turn.spend(WorkTurn.Cost.question + rewrittenBytes) }
      refusals.append(nil)
    } catch {
      turn.spend(WorkTurn.Cost.refusal)
      intake.refuse(error)
      refusals.append(submission.source.mending.waits.contains(error.code) ? error.untilConfigured : error)
      refused.note(submission.name, error.code)
    }
  }

  /// Takes what is to be committed, all of it at once. - Returns: nil if there is nothing to commit.
  public mutating func takeCommit() -> (batches: [ReportBatch], note: BatchNote?)? {
    let batches = named(intake.takeBatches())
    // A refusal that may pass leaves the place where it was.
    let isDue = !refusals.contains { $0?.retryMilliseconds != nil }
    let due = isDue && (group.note?.needsReports == false || !batches.isEmpty) ? group.note : nil
    return batches.isEmpty && due == nil ? nil : (batches, due)
  }

  /// Names the run in its first batch. Batches of several namespaces are no run: each has ids of its own.
  private func named(_ batches: [ReportBatch]) -> [ReportBatch] {
    guard let run = group.run, let first = batches.first, batches.allSatisfy({ $0.namespace == first.namespace }) else {
      return batches
    }
    let isWhole = refusals.count == run.count && refusals.allSatisfy { $0 == nil }
    var batches = batches
    batches[0].run = ReportBatch.Run(run, batchCount: batches.count, isWhole: isWhole)
    return batches
  }

  /// - Parameter outcomes: of its batches, in their order; nil if nothing of them was taken: `failure` says why.
  /// - Returns: one answer for each submission, in their order.
  public mutating func settle(_ outcomes: ArraySlice<BatchOutcome>?, failure: Refusal?) -> [SubmissionAnswer] {
    var rows: [SubmissionAnswer] = []
    var next = outcomes ?? []
    while let settled = intake.settle(next.popFirst(), failure: failure) { rows += settled.answers }
    var answered = rows[...]
    return refusals.map { refusal in
      if let refusal { return .refused(refusal) }
      return answered.popFirst() ?? .refused(Refusal(.internal, "the store gave no answer"))
    }
  }

  /// Takes the tally of what happened since the last call.
  public mutating func takeTally() -> IngestTally { intake.takeTally() }

  /// Takes what was refused since the last call while `isFollowed`.
  public mutating func takeRefused() -> [TailReport] { refused.take() }
}

extension Refusal {
  private static let configuringMilliseconds = 2000

  /// The same as one that passes.
  fileprivate var untilConfigured: Refusal {
    Refusal(code, message, retryMilliseconds: Self.configuringMilliseconds)
  }
}

extension Intake {
  /// Admits a report, changed if it is not taken as it is. - Returns: bytes of a meta that had to be written again.
  /// - Throws: the first refusal; then nothing is taken.
  fileprivate mutating func take(
    mending submission: Submission, session: inout Session, unixMilliseconds now: Int64
  ) throws(Refusal) -> Int {
    do throws(Refusal) {
      return try take(submission, session: &session, unixMilliseconds: now)
    } catch {
      let mending = submission.source.mending
      var (whole, last, cuts, reason) = (submission, error, 0, error)
      while let next = mending.mended(
        whole, after: last, attempt: cuts, session.rules, contextBytes: session.context.members.count)
      {
        do throws(Refusal) {
          let bytes = try take(next, session: &session, unixMilliseconds: now)
          if next.name.type != submission.name.type { countOtherType() }
          return bytes + submission.bytes
        } catch {
          if last.code == .metaTooLarge { cuts += 1 } else { whole = next }
          if error.code != last.code { reason = error }
          last = error
        }
      }
      throw reason
    }
  }

  /// Admits a report of another input than the ingest socket. - Returns: bytes of a meta that had to be written again.
  /// - Throws: the refusal; then nothing is taken.
  fileprivate mutating func take(
    _ submission: Submission, session: inout Session, unixMilliseconds now: Int64
  ) throws(Refusal) -> Int {
    let report = try submission.scanned(reserved: session.reserved)
    let payload = submission.payload ?? []
    let taken = try take(
      report, in: submission.text.span, available: payload.count, session: &session, unixMilliseconds: now)
    if !taken.isWhole {
      appendPayload(payload.span, payload.indices)
      _ = finishPayload()
    }
    return taken.rewrittenBytes
  }
}

/// Reports that one commit takes together: all that an input answers at once, and the note of its place in its source.
public struct SubmissionGroup: Sendable {
  /// Answered in this order.
  public var submissions: [Submission]
  /// Stored in the transaction of the reports (`BatchNote` says when), and read by `SubmissionSink.note`; nil if the input has
  /// no place.
  public var note: BatchNote?
  /// The ids of the reports, where all that have one are of one run; nil: each is known by its own id. An input that
  /// hands some of them over again names the run again.
  public var run: ReportIDRun?
  /// The user whose share of `ingest.memoryMByte` and of the commits the group takes.
  public let userID: UInt32
  /// Its memory is reserved already, for the request that it is made of.
  public let isReserved: Bool

  /// - Parameter userID: the user that is charged.
  public init(
    _ submissions: [Submission], note: BatchNote? = nil, run: ReportIDRun? = nil, userID: UInt32,
    isReserved: Bool = false
  ) {
    (self.submissions, self.note, self.run) = (submissions, note, run)
    (self.userID, self.isReserved) = (userID, isReserved)
  }

  /// Bytes that it holds in memory.
  public var bytes: Int { submissions.reduce(0) { $0 + $1.bytes } }
  /// The most that it and its batches hold until they are committed.
  public var memoryBytes: Int { 2 * bytes }
}
