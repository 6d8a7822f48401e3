import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore

/// Asks for the server's changes and brings them to the store, on a queue of its own: a whole table is unpacked and checked
/// for seconds. Its memory does not depend on the table's size.
actor RecordPuller {
  nonisolated let executor = DispatchQueueExecutor(label: "prism.pulls")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// The largest answer as it is sent.
  static let bodyBytesMax = 1 << 30
  /// The longest transfer.
  private static let timeout: Duration = .seconds(3600)
  /// Records of one transaction: the store does nothing else meanwhile.
  private static let (recordsPerStep, bytesPerStep) = (2000, 1_048_576)
  /// A smaller difference of the clocks is the way of the answer.
  private static let clockDifferenceMin: Int64 = 60_000

  /// The server's clock, as its answers tell it.
  nonisolated let clocks = ServerClocks()

  private let source: (any DownloadSource)?
  private let store: ReportStore
  private let time: any TimeSource
  private var random: Randomness

  init(_ source: (any DownloadSource)?, store: ReportStore, time: any TimeSource, random: Randomness) {
    (self.source, self.store, self.time, self.random) = (source, store, time, random)
  }

  func pull(_ pull: TablePull) async -> PullResult {
    guard let source, let configuration = pull.settings.configuration, let collector = pull.settings.collector,
      let key = pull.settings.key
    else {
      return PullResult(verdict: .failed(PullFailure(cause: "no collector is configured", reach: .all)))
    }
    let question = DownQuestion(
      deviceID: pull.settings.deviceID, namespace: pull.settings.namespace, table: pull.table.name, after: pull.after,
      lastPacket: pull.lastPacket, packetID: PacketID(unixMilliseconds: time.unixMilliseconds, using: &random),
      cipher: configuration.cipher, keyID: key.id)
    // Without memory for it the question is refused, and asked again.
    let proof = (try? question.code(key.secret)).map { [(name: "Prism-Mac", value: $0)] } ?? []
    var request = TransferRequest(
      get: collector.base + question.target, headers: question.fields + proof + configuration.authorization,
      timeout: Self.timeout, answerBytesMax: min(pull.bytesMax, Self.bodyBytesMax))
    // That of a refusal: a table goes into a file.
    request.answerBytesKept = 64 * 1024
    request.tls = configuration.tls
    let answer = await source.download(request)
    var result = PullResult(verdict: .failed(PullFailure(cause: "", reach: .all)), bytes: answer.bytesOnWire)
    do {
      let opened = try open(answer, to: question, key: key.secret, pull)
      (result.verdict, result.isWholeTable) = try await apply(opened, pull)
      clocks.tellOfAnswer(pull.settings.namespace)
    } catch { result.verdict = .failed(PullFailure(error)) }
    return result
  }

  // MARK: The answer

  private struct Opened {
    var lines: DownLines
    var target: DownTarget
    /// The store lacks the last packet of records.
    var isChainBroken: Bool
  }

  private func open(
    _ answer: DownloadAnswer, to question: DownQuestion, key: Secret, _ pull: TablePull
  ) throws -> Opened {
    guard case .response(200, let headers, _) = answer.outcome, let body = answer.body else {
      throw PullFailure(answer.outcome, now: time.unixMilliseconds)
    }
    let read: DownHeaders
    do throws(PacketHeaderFault) {
      read = try DownHeaders(answering: question) { name in headers[name].map { [$0] } ?? [] }
    } catch {
      // A portal that answers every address with its page, or a collector of another kind.
      throw PullFailure(cause: "the answer is no table of records: \(error)", reach: .all)
    }
    let ahead = time.unixMilliseconds - read.sentTime
    let target = DownTarget(
      pull.table, of: pull.settings.namespace, tables: pull.settings.configuration?.tables ?? [],
      clockAheadMilliseconds: abs(ahead) >= Self.clockDifferenceMin ? ahead : 0)
    let unpackedMax = (pull.table.maxRecord + DownOperation.countMax + 1) * (DownLine.bytesMax + 1)
    let reader = DownReader(key: key, unpackedBytesMax: unpackedMax)
    let lines = try reader.open(read, body: body, mac: headers["prism-mac"])
    clocks.note(ServerClock(unixMilliseconds: read.sentTime, uptime: time.uptime), of: pull.settings.namespace)
    return Opened(lines: lines, target: target, isChainBroken: read.isChainBroken)
  }

  // MARK: To the store

  private func apply(
    _ opened: Opened, _ pull: TablePull
  ) async throws -> (verdict: PullResult.Verdict, isWhole: Bool) {
    var opened = opened
    opened.target.settledBefore = pull.settledBefore
    var reading = DownReading(table: pull.table.name, after: pull.after)
    var operations: [DownOperation] = []
    while let line = try opened.lines.next().map({ try reading.read($0) }) {
      switch line {
      case .head(let head):
        let change = try await recognize(head, pull, missing: opened.isChainBroken ? pull.lastPacket : nil)
        guard change == .same else { return (.storeChanged(change), false) }
        (opened.target.store, opened.target.isUnheard) = (head.store, head.isUnheard)
        guard head.isFull else { break }
        return (.applied(try await applyWhole(head, opened, reading, pull), sequence: head.sequence), true)
      case .operation(let operation): operations.append(operation)
      case .record: break
      }
    }
    let sequence = try reading.finish()
    let page = DownPage(
      operations: operations, after: pull.after ?? 0, sequence: sequence, othersThrough: pull.othersThrough)
    return (.applied(try await store.apply(page, to: opened.target), sequence: sequence), false)
  }

  /// A store that answers with all records of a table of which it sent newer numbers, or that does not know the table any
  /// more, knows less than it did.
  private func recognize(
    _ head: DownHead, _ pull: TablePull, missing: PacketID?
  ) async throws(StoreError) -> KnownStore.Change {
    guard let mark = head.store else { return .same }
    let knowsLess = pull.after.map { head.isFull && (head.sequence < $0 || head.isUnheard && pull.holdsRecords) }
    return try await store.recognize(mark, knowsLess: knowsLess ?? false, missing: missing, in: pull.settings.namespace)
  }

  private func applyWhole(
    _ head: DownHead, _ opened: Opened, _ reading: DownReading, _ pull: TablePull
  ) async throws -> DownOutcome {
    guard head.count <= pull.table.maxRecord else {
      throw PullFailure(
        cause: "the server has \(head.count) records in \(pull.table.name), and its maxRecord is "
          + "\(pull.table.maxRecord): raise it", reach: .table)
    }
    let content = try await store.beginTable(opened.target)
    do {
      try await stage(head, opened, reading, in: content)
      return try await store.finishTable(content, opened.target, sequence: head.sequence)
    } catch {
      try? await store.dropTable(content)  // a store that fails forgets it by itself
      throw error
    }
  }

  private func stage(
    _ head: DownHead, _ opened: Opened, _ reading: DownReading, in content: Int64
  ) async throws {
    var reading = reading
    var (records, bytes): ([DownRecord], Int) = ([], 0)
    while true {
      let line = try opened.lines.next().map { try reading.read($0) }
      if case .record(let record) = line {
        records.append(record)
        bytes += record.fields.count
      }
      if line == nil || records.count >= Self.recordsPerStep || bytes >= Self.bytesPerStep {
        if Task.isCancelled { throw PullFailure(cause: "the daemon is stopping", reach: .all) }
        guard try await store.add(records, sequence: head.sequence, to: content) else {
          throw StoreError.unavailable("it was opened again")
        }
        (records, bytes) = ([], 0)
      }
      if line == nil { break }
    }
    _ = try reading.finish()
  }
}

extension PullFailure {
  fileprivate init(_ error: any Error) {
    switch error {
    case let failure as PullFailure: self = failure
    case let error as PacketError:
      self.init(cause: "the answer can't be read: \(error.rawValue)", reach: error == .internal ? .all : .table)
    case let fault as DownFault: self.init(cause: fault.message, reach: .table, asksForAll: fault == .order)
    default: self.init(cause: "the store failed: \(error)", reach: .all)
    }
  }

  /// - Parameter outcome: not 200. - Parameter now: milliseconds since 1970, for a `Retry-After` that is a date.
  fileprivate init(_ outcome: PostAnswer.Outcome, now: Int64) {
    switch outcome {
    case .failure(let failure, let detail):
      self.init(cause: "\(failure.rawValue): \(detail.cut(atBytes: 200))", reach: .all)
    case .response(let status, let headers, let body):
      // An answer's body may hold anything.
      let said = (try? JSONValue(parsing: body))?["message"]?.string
      let message = said.map { ": " + $0.cut(atBytes: 200) } ?? ""
      let isPassing = [408, 425, 429].contains(status) || status >= 500 || status < 300
      self.init(cause: "status \(status)\(message)", reach: isPassing ? .all : .configuration)
      retryAfter = headers["retry-after"].flatMap { RetryAfter.parse($0, serverDate: headers["date"], now: now) }
    }
  }
}
