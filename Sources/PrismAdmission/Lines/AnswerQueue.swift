public import PrismProtocol

/// The answers that a connection is owed, in the order of its requests; rendered as soon as all before them are known.
struct AnswerQueue: Sendable {
  private enum Item {
    /// Reports that wait for their commit.
    case rows(Int, AnswerMode)
    /// A request about records that waits for its commit, and the memory that its answer may take.
    case record(bytes: Int)
    /// Answers that are ready, as they will be sent, and how many reports they deal with.
    case ready([UInt8], reports: Int)
    /// The report of this number on the connection was refused; the next cumulative line lists it.
    case refused(sequence: Int, Refusal)
    /// In place of an item while that is changed.
    case changing
  }

  /// The most that an answer costs in memory beside its text.
  private static let itemBytes = 96

  private var items = Ring<Item>()
  /// Reports that came on this connection.
  private(set) var received = 0
  private var dealtWith = 0
  private var refused: [(sequence: Int, refusal: Refusal)] = []
  /// Reports that `sample` left out, for the next cumulative line.
  private var sampledOut = 0
  /// Something was dealt with in `cumulative` mode that no line has acknowledged yet.
  private var owesAck = false
  /// Memory of the answers that are not rendered: they wait behind reports whose commit is not settled, or for what the
  /// store is asked for.
  private(set) var bytes = 0
  private var summary = AnswerSummary()
  /// The client reads its answers. Where it does not, no text is made of a refusal.
  var isRead = true

  /// Takes what the requests since the last call were answered.
  mutating func takeSummary() -> AnswerSummary {
    defer { summary = AnswerSummary() }
    return summary
  }

  /// Bytes of memory that the answers to greetings and questions may take, since the last summary.
  var questionBytes: Int { summary.questionBytes }

  var isEmpty: Bool { items.isEmpty }

  /// A report went on its way to a commit.
  mutating func expectRow(_ mode: AnswerMode) {
    received += 1
    summary.answers += 1
    let isCounted = items.withLast { last in
      guard case .rows(let count, mode) = last else { return false }
      last = .rows(count + 1, mode)
      return true
    }
    if isCounted != true { items.append(.rows(1, mode)) }
  }

  /// A request about records went on its way to a commit.
  /// - Parameter answerBytes: the most memory that its answer takes.
  mutating func expectRecord(answerBytes: Int) {
    summary.answers += 1
    summary.questionBytes += answerBytes
    bytes += Self.itemBytes + answerBytes
    items.append(.record(bytes: answerBytes))
  }

  private mutating func settle(_ answer: RecordAnswer, into output: inout [UInt8]) {
    renderReady(into: &output)
    guard case .record(let answerBytes)? = items.first else { return }  // no answer is owed
    renderAck(into: &output)
    summary.note(answer)
    output.append(contentsOf: AnswerText.record(answer))
    bytes -= Self.itemBytes + answerBytes
    items.removeFirst()
  }

  /// A report was refused before it got to a commit.
  mutating func refuse(_ refusal: Refusal, _ mode: AnswerMode) {
    received += 1
    summary.refuse(refusal)
    summary.answers += 1
    guard isRead else { return append([], reports: 1) }
    switch mode {
    case .each: append(AnswerText.refused(refusal), reports: 1)
    case .cumulative:
      items.append(.refused(sequence: received, refusal))
      bytes += Self.bytes(of: refusal)
    }
  }

  /// The answer to what is not a report. - Parameter refusal: nil if the answer is not a refusal.
  mutating func append(_ line: [UInt8], _ refusal: Refusal? = nil) {
    summary.answers += 1
    summary.questionBytes += line.count
    if let refusal { summary.refuse(refusal) }
    append(line, reports: 0)
  }

  /// Answers that wait for the same report share one item: an item for each would cost more than its text.
  private mutating func append(_ lines: [UInt8], reports: Int) {
    bytes += lines.count
    let isJoined = items.withLast { last in
      guard case .ready(var before, let count) = last else { return false }
      last = .changing  // so that the text grows in place
      before += lines
      last = .ready(before, reports: count + reports)
      return true
    }
    guard isJoined != true else { return }
    items.append(.ready(lines, reports: reports))
    bytes += Self.itemBytes
  }

  private static func bytes(of refusal: Refusal) -> Int { itemBytes + refusal.message.utf8.count }

  /// Renders what is ready. Call it once for all that one chunk or one commit brought: it ends a cumulative line.
  mutating func flush(into output: inout [UInt8]) {
    renderReady(into: &output)
    renderAck(into: &output)
  }

  /// A batch of this connection is settled; batches are settled in the order in which their reports came.
  mutating func settle(_ batch: CommittedBatch, into output: inout [UInt8]) {
    if let record = batch.record { return settle(record, into: &output) }
    var row = 0
    var exceptions = batch.exceptions[...]
    if let refusal = batch.firstRefusal { summary.refuse(refusal) }
    while row < batch.rowCount {
      renderReady(into: &output)
      guard case .rows(let count, let mode)? = items.first else { return }  // no answer is owed: not our batch
      let end = min(batch.rowCount, row + count)
      let here = exceptions.prefix { $0.row < end }
      exceptions = exceptions[here.endIndex...]
      switch mode {
      case .each:
        renderAck(into: &output)
        batch.render(row..<end, exceptions: here, into: &output)
      case .cumulative: note(batch, row..<end, exceptions: here)
      }
      dealtWith += end - row
      consume(end - row, of: count, mode)
      row = end
    }
  }

  private mutating func consume(_ rows: Int, of count: Int, _ mode: AnswerMode) {
    if rows == count {
      items.removeFirst()
    } else {
      _ = items.withFirst { $0 = .rows(count - rows, mode) }
    }
  }

  /// For the cumulative line to come.
  private mutating func note(
    _ batch: CommittedBatch, _ rows: Range<Int>, exceptions: ArraySlice<(row: Int, what: BatchOutcome.Exception)>
  ) {
    owesAck = true
    let first = dealtWith + 1
    if let failure = batch.failure {
      for row in rows { refused.append((first + row - rows.lowerBound, failure)) }
      bytes += rows.count * Self.bytes(of: failure)
      return
    }
    sampledOut += exceptions.count { $0.what == .sampledOut }
    for case (let row, .refused(let refusal)) in exceptions {
      refused.append((first + row - rows.lowerBound, refusal))
      bytes += Self.bytes(of: refusal)
    }
  }

  private mutating func renderReady(into output: inout [UInt8]) {
    while let item = items.first {
      switch item {
      case .rows, .record, .changing: return
      case .ready(let lines, let reports):
        renderAck(into: &output)
        output.append(contentsOf: lines)
        dealtWith += reports
        bytes -= lines.count + Self.itemBytes
      case .refused(let sequence, let refusal):
        refused.append((sequence, refusal))
        dealtWith += 1
        owesAck = true
      }
      items.removeFirst()
    }
  }

  private mutating func renderAck(into output: inout [UInt8]) {
    guard owesAck else { return }
    AnswerText.appendAcked(dealtWith, refused: refused, sampledOut: sampledOut, to: &output)
    for item in refused { bytes -= Self.bytes(of: item.refusal) }
    (refused, sampledOut, owesAck) = ([], 0, false)
  }
}

/// The answers to a number of requests, all in all: an adapter that has one status for them takes it from here.
public struct AnswerSummary: Sendable, Equatable {
  /// Answers to reports, greetings and questions.
  public internal(set) var answers = 0
  /// Bytes of memory that the answers to greetings and questions may take.
  var questionBytes = 0
  private var refusal: Refusal?
  /// The last answer to a request about records.
  public private(set) var record: RecordMark?

  /// The refusal, if there was one request and it was refused.
  public var onlyRefusal: Refusal? { answers == 1 ? refusal : nil }

  mutating func refuse(_ refusal: Refusal) { self.refusal = refusal }

  mutating func note(_ answer: RecordAnswer) {
    switch answer {
    case .stored(let version): record = version.map { .current($0) }
    case .record(let found): record = found.map { .current($0.version) } ?? .absent
    case .list(_, let generation, _), .watching(_, _, let generation): record = .current(generation)
    case .refused(let refusal): refuse(refusal)
    }
  }
}

/// The state that an answer about records shows: an adapter for HTTP makes its status and its ETag of it.
public enum RecordMark: Sendable, Equatable {
  /// The version of the record, or the generation of its table.
  case current(Int64)
  /// There is no such record.
  case absent
}
