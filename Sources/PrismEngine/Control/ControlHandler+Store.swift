import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol
import PrismStore

// Commands on stored reports: dead letters, removal, export, trace.
extension ControlHandler {
  private var store: ReportStore { engine.parts.store }

  // MARK: Dead letters

  func listDead(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    let namespace = try namespace(request)
    return try await asking { try await store.deadPage(of: namespace, request) }
  }

  func showDead(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    guard let selection = try await deadSelection(request) else {
      throw Refused(64, "dead show: which one? See `prismctl dead list`")
    }
    guard let found = try await asking({ try await store.deadLetter(selection) }) else { throw selection.isEmpty }
    var report = DeadLetterReport(found.letter)
    // A report may have keys that stand twice below its top level; one that is no JSON at all was never stored.
    report.meta = (try? JSONValue(parsing: found.meta, allowsDuplicateKeys: true)) ?? .null
    report.payload = found.payload.map { Base64.encode($0) }
    return report.members
  }

  func settleDead(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    let all = request["all"]?.bool == true ? DeadLetterSelection.all(try namespace(request)) : nil
    guard let selection = try await deadSelection(request) ?? all else {
      throw Refused(64, "either an `id` of `prismctl dead list`, or `all`")
    }
    let (isRequeue, namespace) = (request.command == .deadRequeue, try namespace(request))
    let count = try await asking { try await engine.settle(selection, isRequeue: isRequeue, of: namespace) }
    if count == 0, all == nil { throw selection.isEmpty }
    return [.init(isRequeue ? "requeued" : "dropped", .int(count))]
  }

  /// A report id may be of digits, as the numbers of dead letters are.
  private func deadSelection(_ request: ControlRequest) async throws(Refused) -> DeadLetterSelection? {
    let selection = DeadLetterSelection(request)
    guard case .number(let number)? = selection, request["isNumber"]?.bool != true else { return selection }
    let named = try await asking { try await store.deadLetter(.report(String(number)))?.letter.number }
    guard let named, named != number else { return selection }
    guard try await asking({ try await store.deadLetter(.number(number)) }) == nil else {
      throw Refused(
        64, "\(number) is the number of one dead letter and the report id of another one: add --number or --report-id")
    }
    return .report(String(number))
  }

  // MARK: Removal

  func remove(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    let (namespace, selection) = (try namespace(request, orAsk: "remove: of which namespace?"), try removal(request))
    let removed = try await asking { try await store.remove(selection, of: namespace) }
    // One that is configured no more may have reports.
    guard removed > 0 || engine.hub.current.namespaces[namespace] != nil else { throw unknown(namespace) }
    return [Answers.removed(removed)]
  }

  private func removal(_ request: ControlRequest) throws(Refused) -> RemovalSelection {
    if request["all"]?.bool == true { return .all }
    if let id = request["reportId"]?.string { return .report(id) }
    let counted: [(String, (Int) -> RemovalSelection)] = [
      ("oldest", { .oldest($0) }), ("latest", { .latest($0) }), ("beforeDays", { .olderThan(days: $0) }),
    ]
    for (key, selection) in counted {
      guard let count = request[key]?.int else { continue }
      guard count >= 0 else { throw Refused(64, "remove: `\(key)` is \(count), must be 0 or more") }
      return selection(count)
    }
    throw Refused(64, "remove: one of `all`, `oldest`, `latest`, `beforeDays`, `reportId`")
  }

  // MARK: Trace

  func trace(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    guard let id = request["reportId"]?.string else { throw Refused(64, "trace: which `reportId`?") }
    let rows = try await asking { try await store.trace(id) }
    guard !rows.isEmpty else {
      throw Refused(
        1,
        "this report is not held, was not delivered within the last 24 h, and was not dropped since prismd started; `prismctl status --all` counts what left, and how"
      )
    }
    var reports: [TraceReport] = []
    for row in rows {
      var report = TraceReport(row)
      report.lastFailure = await present(of: row)
      reports.append(report)
    }
    return [Answers.rows(reports)]
  }

  /// Of a row that is to be delivered yet: what went wrong since it is there.
  private func present(of row: TracedRow) async -> FailureReport? {
    switch row.place {
    case .dead, .delivered, .kept, .dropped: return nil
    case .waiting, .inFlight: break
    }
    guard let failure = await engine.pipelines[row.namespace]?.deliveries[row.kind].retry.lastFailure,
      failure.unixMilliseconds >= row.createdTime ?? 0
    else { return nil }
    return FailureReport(failure)
  }

  // MARK: Export

  /// - Throws: for a name that can be no namespace's, or no kind's.
  func export(_ request: ControlRequest, _ note: ControlLog) throws(Refused) -> AsyncStream<JSONValue> {
    let only = try namespace(request)
    var kinds = RowKind.reports
    if let text = request["kind"]?.string {
      guard let kind = RowKind(named: text), kind.isReport else { throw Refused(64, "kind: must be meta or payload") }
      kinds = [kind]
    }
    let isKnown = only.map { engine.hub.current.namespaces[$0] != nil } ?? true
    let pager = ExportPager(
      store: store, note: note, only: only, kinds: kinds, otherwise: isKnown ? nil : unknown(only))
    return AsyncStream { await pager.next() }
  }
}

/// Stored rows, one JSON object after another, a page in memory at a time.
private actor ExportPager {
  private static let pageRows = 200

  private let store: ReportStore
  private var queues: [(NamespaceName, RowKind)]?
  private let only: NamespaceName?
  private let kinds: [RowKind]
  /// Of a namespace that is not configured: if it has no rows either.
  private let otherwise: ControlHandler.Refused?
  private var page: ArraySlice<(id: Int64, meta: [UInt8], payload: [UInt8]?)> = []
  private var after: Int64 = 0
  private var isDone = false
  private var exported = 0
  private let note: ControlLog

  init(
    store: ReportStore, note: ControlLog, only: NamespaceName?, kinds: [RowKind], otherwise: ControlHandler.Refused?
  ) {
    (self.store, self.note, self.only, self.kinds, self.otherwise) = (store, note, only, kinds, otherwise)
  }

  /// The client may go away at any row.
  deinit { note.write([.init("exported", .int(exported))]) }

  /// nil after the last line, which has `"done":true`.
  func next() async -> JSONValue? {
    if isDone { return nil }
    var queues: [(NamespaceName, RowKind)]
    if let known = self.queues { queues = known } else { queues = await all() }
    if let otherwise, self.queues == nil, queues.isEmpty {
      isDone = true
      return otherwise.line
    }
    while page.isEmpty, let (namespace, kind) = queues.first {
      do {
        page = try await store.export(namespace, kind, after: after, limit: Self.pageRows)[...]
      } catch {
        isDone = true
        note.write(failure: error.description)
        return Answers.Failure(69, error.description).line
      }
      if let last = page.last { after = last.id } else { (queues, after) = (Array(queues.dropFirst()), 0) }
    }
    self.queues = queues
    guard let row = page.popFirst(), let (namespace, kind) = queues.first else {
      isDone = true
      note.write([.init("exported", .int(exported))])
      return ["done": true]
    }
    exported += 1
    return line(row, namespace, kind)
  }

  private func all() async -> [(NamespaceName, RowKind)] {
    await store.namespaces().filter { only == nil || $0 == only }.flatMap { name in kinds.map { (name, $0) } }
  }

  private func line(
    _ row: (id: Int64, meta: [UInt8], payload: [UInt8]?), _ namespace: NamespaceName, _ kind: RowKind
  ) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("namespace", .string(namespace.text)), .init("kind", .string(kind.name)),
      .init("meta", (try? JSONValue(parsing: row.meta, allowsDuplicateKeys: true)) ?? .null),  // it is one: checked
    ]
    if let payload = row.payload { members.append(.init("payload", .string(Base64.encode(payload)))) }
    return .object(members)
  }
}

extension ReportStore {
  /// A page of dead letters, and one of refused records.
  fileprivate func deadPage(
    of namespace: NamespaceName?, _ request: ControlRequest
  ) throws(StoreError) -> [JSONValue.Member] {
    let letters = try deadLetters(of: namespace, after: request["after"]?.int ?? 0, limit: 1000)
    let refused = try refusedRecords(of: namespace, after: Int64(request["afterRecord"]?.int ?? 0), limit: 1000)
    return [
      Answers.dead(letters.map { DeadLetterReport($0) }),
      Answers.refusedRecords(refused.map { RefusedRecordReport($0) }),
    ]
  }
}

extension DeadLetterReport {
  fileprivate init(_ letter: DeadLetter) {
    self.init()
    (id, namespace, kind) = (letter.number, letter.namespace.text, letter.kind.name)
    // As the program sent it; its meta has the namespace in front.
    let prefix = letter.namespace.isBusiness ? "\(letter.namespace)-" : ""
    type = letter.type.hasPrefix(prefix) ? String(letter.type.dropFirst(prefix.count)) : letter.type
    (reportId, packetId) = (letter.reportID, letter.packet.description)
    (status, message) = (letter.cause.status, letter.cause.message)
    time = RFC3339.text(unixMilliseconds: letter.cause.unixMilliseconds)
    (attempts, bytes, userId) = (letter.cause.attempts, letter.bytes, letter.userID.map { Int($0) })
  }
}

extension RefusedRecordReport {
  fileprivate init(_ refused: RefusedRecord) {
    self.init()
    let record = refused.record
    (number, namespace, table) = (Int(refused.number), refused.namespace.text, refused.table.text)
    (id, serverId, change, version) = (record.id.text, record.serverID?.text, record.state.name, Int(record.version))
    (time, message) = (RFC3339.text(unixMilliseconds: record.changedTime), record.refusal ?? "")
    bytes = record.fields.count
  }
}

extension TraceReport {
  fileprivate init(_ row: TracedRow) {
    self.init()
    func text(_ milliseconds: Int64) -> String { RFC3339.text(unixMilliseconds: milliseconds) }
    (namespace, kind, createdTime) = (row.namespace.text, row.kind.name, row.createdTime.map(text))
    (type, countedOn) = (row.type?.text, row.countedOn)
    userId = row.userID.map { Int($0) }
    var packet: PacketID?
    switch row.place {
    case .waiting: state = "waiting"
    case .kept: state = "kept"
    case .inFlight(let claimPacket, let claimed):
      (state, packet, claimedTime) = ("claimed", claimPacket, text(claimed))
    case .dead(let number, let lastPacket, let cause):
      (state, packet, id, status) = ("dead", lastPacket, number, cause.status)
      (message, time, attempts) = (cause.message, text(cause.unixMilliseconds), cause.attempts)
    case .delivered(let lastPacket, let receipt):
      (state, packet, deliveredTime) = ("delivered", lastPacket, text(receipt.unixMilliseconds))
      (attempts, duplicate) = (receipt.attempts, receipt.wasDuplicate)
    case .dropped(let account, let left):
      (state, cause, time) = ("dropped", account.rawValue, text(left))
    }
    (packetId, packetTime) = (packet?.description, packet.map { text($0.unixMilliseconds) })
  }
}

extension DeadLetterSelection {
  /// By the number, or by the report's id; nil: the request has neither.
  fileprivate init?(_ request: ControlRequest) {
    guard let id = request["id"], let one = id.int.map({ Self.number($0) }) ?? id.string.map({ .report($0) }) else {
      return nil
    }
    self = one
  }

  /// The failure of a selection without a letter.
  fileprivate var isEmpty: ControlHandler.Refused {
    switch self {
    case .number(let number): .init(1, "there is no dead letter \(number)")
    case .report(let id): .init(1, "no dead letter has the report id \(id)")
    case .all: .init(1, "there is no dead letter")
    }
  }
}
