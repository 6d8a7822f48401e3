public import PrismProtocol

/// A batch and what its commit did with it, as its connection is answered.
struct CommittedBatch: Sendable {
  private let batch: ReportBatch
  private let ids: [RowID]
  private let epoch: [UInt8]
  let exceptions: [(row: Int, what: BatchOutcome.Exception)]
  /// Why nothing of it was taken; nil if it was committed.
  let failure: Refusal?
  var recordRequest: RecordRequest? { batch.record }
  let record: RecordAnswer?

  init(_ batch: ReportBatch, _ outcome: BatchOutcome) {
    (self.batch, ids, epoch) = (batch, outcome.ids, Array(outcome.epoch.utf8))
    (exceptions, failure, record) = (outcome.exceptions, nil, outcome.record?.answer)
  }

  init(_ batch: ReportBatch, failure: Refusal) {
    (self.batch, ids, epoch, exceptions, self.failure) = (batch, [], [], [], failure)
    record = batch.record.map { _ in .refused(failure) }
  }

  var rowCount: Int { batch.rows.count }

  var firstRefusal: Refusal? {
    if let failure { return failure }
    for case (_, .refused(let refusal)) in exceptions { return refusal }
    return nil
  }

  /// The answer to each row, in their order.
  var answers: [SubmissionAnswer] {
    var exceptions = exceptions[...]
    return (0..<rowCount).map { row in
      if let failure { return .refused(failure) }
      switch exceptions.first?.row == row ? exceptions.removeFirst().what : nil {
      case .refused(let refusal): return .refused(refusal)
      case .duplicate: return .duplicate
      case .sampledOut: return .sampled
      case .collapsed, nil: return .stored
      }
    }
  }

  /// Of the report on whose row this one was counted.
  private func firstID(_ row: Int, _ given: [UInt8]?) -> String {
    given.map { String(decoding: $0, as: UTF8.self) }
      ?? ids[row].reportID(epoch: String(decoding: epoch, as: UTF8.self))
  }

  private func append(reportIDOf row: Int, to output: inout [UInt8]) {
    if let given = batch.rows[row].clientReportID {
      output.append(contentsOf: batch.arena[given])
    } else {
      ids[row].appendReportID(epoch: epoch, to: &output)
    }
  }

  /// Refused rows by code.
  var refusals: [Refusal] {
    if let failure { return Array(repeating: failure, count: rowCount) }
    return exceptions.compactMap { if case .refused(let refusal) = $0.what { refusal } else { nil } }
  }

  /// Rows whose ids were known.
  var repeatedCount: Int { exceptions.count { $0.what == .duplicate } }

  /// Rows that were counted and not stored.
  var sampledCount: Int { batch.marks.isEmpty ? 0 : exceptions.count { $0.what == .sampledOut } }

  /// One line a row.
  func render(
    _ rows: Range<Int>, exceptions: ArraySlice<(row: Int, what: BatchOutcome.Exception)>, into output: inout [UInt8]
  ) {
    if let failure {
      let line = AnswerText.refused(failure)
      for _ in rows { output.append(contentsOf: line) }
      return
    }
    var exceptions = exceptions
    for row in rows {
      let exception = exceptions.first?.row == row ? exceptions.removeFirst().what : nil
      switch exception {
      case .refused(let refusal): output.append(contentsOf: AnswerText.refused(refusal))
      case .duplicate: renderStored(row, isDuplicate: true, into: &output)
      case .sampledOut: output.append(contentsOf: AnswerText.sampled)
      case .collapsed(let given):
        AnswerText.appendStored(isCollapsed: true, to: &output) { $0.append(contentsOf: firstID(row, given).utf8) }
      case nil: renderStored(row, isDuplicate: false, into: &output)
      }
    }
  }

  private func renderStored(_ row: Int, isDuplicate: Bool, into output: inout [UInt8]) {
    AnswerText.appendStored(
      isDuplicate: isDuplicate, isPayloadLeftOut: batch.rows[row].isPayloadLeftOut, to: &output
    ) { append(reportIDOf: row, to: &$0) }
  }
}

/// The answer to one report. A value: each input renders it in its own protocol.
public enum SubmissionAnswer: Sendable, Equatable {
  /// Committed, as `durability` says.
  case stored
  /// The id that the input gave is known: the report is stored once, now or before.
  case duplicate
  /// Left out by the `sample` of its type, and counted: there is nothing to hand over again.
  case sampled
  /// Not taken. `retryMilliseconds` says whether it makes sense to hand it over again.
  case refused(Refusal)

  /// nil if it was taken.
  public var refusal: Refusal? { if case .refused(let refusal) = self { refusal } else { nil } }
}

/// Takes admitted reports to their commit: the store's side of admission.
public protocol ReportSink: Sendable {
  /// The next commit is large, and for one of several clients, which wait for all that the sink does.
  func noteContention()

  /// Commits all of `batches` and `notes` at once, as `durability` says. Never throws: a failure is the outcome that every
  /// report of it is answered with.
  ///
  /// - Parameter whenDone: called once, where the commit was made, after this has returned. Not `async`: a client that
  ///   waits for its answer would wait for two more threads to wake up.
  func append(
    _ batches: [ReportBatch], notes: [BatchNote], whenDone: @escaping @Sendable (CommitOutcome) -> Void)

  /// Reads what `append` noted last under this key. - Returns: nil if there is no note, or it can't be read.
  func note(_ key: String, of namespace: NamespaceName) async -> [UInt8]?
}
