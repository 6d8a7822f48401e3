public import PrismProtocol
import PrismSQLite

/// A question that is being answered: what was found until now, and where to go on.
public struct QuestionRun: Sendable {
  let question: Question
  let allows: @Sendable (ReportType) -> Bool
  /// Rows from this id on were looked at.
  fileprivate var end = Int64.max
  /// Kept reports that are to leave.
  fileprivate var ids: [Int64] = []
  /// Reports that it is about, by the numbers of their types.
  fileprivate var types: [Int64: RowCount] = [:]
  /// As found until now.
  public var answer = QuestionAnswer()
  /// Every kept report was looked at.
  public fileprivate(set) var isComplete = false

  /// - Parameter allows: whether reports of a type may be asked for.
  public init(_ question: Question, allows: @escaping @Sendable (ReportType) -> Bool) {
    (self.question, self.allows) = (question, allows)
  }
}

/// Answers questions about kept reports (docs/recorder.md, "Questions").
struct Questions: StoreOperations {
  /// Kept reports that one slice looks at: some milliseconds.
  private static let rowsPerSlice = 2000

  let transaction: StoreTransaction
  private let ring: Ring
  init(_ transaction: StoreTransaction) { (self.transaction, ring) = (transaction, Ring(transaction)) }

  /// Looks at the next slice of kept reports, the newest first.
  func look(_ run: inout QuestionRun, _ namespace: NamespaceName) throws(SQLiteError) {
    guard let metas = state.queue(namespace, .meta), let payloads = state.queue(namespace, .payload) else {
      run.isComplete = true
      return
    }
    var (rest, isAtEnd) = (Self.rowsPerSlice, true)
    try ring.walkKept(metas.namespace, before: run.end) { (row, raw) throws(SQLiteError) in
      (run.end, rest) = (row.id, rest - 1)
      run.answer.looked += 1
      if StoredRow.isWhole(row, raw), try isAbout(row, run, metas) { try add(row, to: &run, metas, payloads) }
      isAtEnd = rest > 0
      return isAtEnd
    }
    run.isComplete = isAtEnd
  }

  private func isAbout(_ row: StoredRow, _ run: QuestionRun, _ metas: QueueID) throws(SQLiteError) -> Bool {
    let (question, type) = (run.question, state.names.types[row.type]!)
    guard question.type == type || question.type.isPattern && question.type.matches(type), run.allows(type),
      question.since.map({ $0 <= row.createdTime }) ?? true, question.until.map({ row.createdTime < $0 }) ?? true
    else { return false }
    if let seconds = question.lastSeconds {
      let stated = transaction.unixMilliseconds.subtractingReportingOverflow(row.createdTime).partialValue
      let age = transaction.memory.held.age(
        of: RowID(value: row.id).sequence, stated: stated, transaction.uptime)
      guard age <= .seconds(seconds) else { return false }
    }
    guard let field = question.field, let condition = question.condition else { return true }
    return condition.isMet(by: try ring.value(of: field, in: row, metas))
  }

  private func add(
    _ row: StoredRow, to run: inout QuestionRun, _ metas: QueueID, _ payloads: QueueID
  ) throws(SQLiteError) {
    var number = 1.0
    switch run.question.want {
    case .rows:
      run.answer.bytes += try ring.keptBytes(of: row, payloads)
      if run.answer.bytes <= run.question.bytesMax { run.ids.append(row.id) }
    case .count: break
    case .numbers(let field):
      guard let value = try ring.value(of: field, in: row, metas)?.double, value.isFinite else { return }
      number = value
    }
    run.answer.rows += 1
    run.types[row.type, default: RowCount()].rows += 1
    guard run.question.want != .rows else { return }
    guard let key = run.question.by else { return run.answer.add(number, to: "") }
    let value = try ring.value(of: key, in: row, metas)
    run.answer.add(number, to: value?.groupName)
  }

  /// Writes the end of a question's command down, and lets the reports go that are still kept. It is one transaction, so that
  /// a question is answered once or not at all. For a refusal, nothing leaves.
  func finish(_ run: inout QuestionRun, _ step: CommandStep) throws(SQLiteError) -> CommandStep.Outcome {
    var (members, step) = (IDRuns(), step)
    guard step.answer.state == .done else {
      let outcome = try CommandBook(transaction).write(step)
      if outcome == .written { try note(run, .refused, step.namespace) }
      return outcome
    }
    if !run.ids.isEmpty, let metas = state.queue(step.namespace, .meta) {
      for id in run.ids.reversed() where !state[metas].isLeaving(id) || state[metas].isAsked(id) {
        if try transaction.exists(id, MemoryRing(transaction).home(of: id, metas)) { try members.append(read: id) }
      }
      run.answer.rows = members.count
    }
    step.answer.result = run.answer.fitted
    let outcome = try CommandBook(transaction).write(step)
    if outcome == .written, !members.isEmpty, let metas = state.queue(step.namespace, .meta) {
      _ = try ring.letGo(members, metas.namespace, by: Self.rulePrefix + step.command.text)
    }
    if outcome == .written, run.question.want != .rows { try note(run, .asked, step.namespace) }
    return outcome
  }

  private func note(_ run: QuestionRun, _ fate: RingHour.Fate, _ namespace: NamespaceName) throws(SQLiteError) {
    guard let number = state.names.number(of: namespace) else { return }
    try ring.note(run.types, fate, number)
  }

  /// No trigger has such a name.
  static let rulePrefix = "ask."
}

extension ReportStore {
  /// Looks at a slice of the kept reports that a question is about. Call it until the run is complete.
  public func look(_ run: QuestionRun, of namespace: NamespaceName) throws(StoreError) -> QuestionRun {
    var run = run
    try read { (transaction) throws(SQLiteError) in try Questions(transaction).look(&run, namespace) }
    return run
  }

  /// Lets the reports of a complete run go, and writes its answer into the record of its command, in one transaction.
  /// - Parameter step: its answer has no result yet; or it is a refusal, and no report goes. - Throws: then nothing was done; or all, if `uncertain`.
  public func finish(
    _ run: QuestionRun, _ step: CommandStep
  ) throws(StoreError) -> (outcome: CommandStep.Outcome, answer: QuestionAnswer) {
    var run = run
    let outcome = try write { (transaction) throws(SQLiteError) in try Questions(transaction).finish(&run, step) }
    return (outcome, run.answer)
  }
}

extension JSONValue {
  /// Equal numbers are one group, in any form.
  fileprivate var groupName: String {
    guard let number = double, number == number.rounded(), abs(number) < 0x1p53 else { return string ?? text }
    return String(Int(number))
  }
}
