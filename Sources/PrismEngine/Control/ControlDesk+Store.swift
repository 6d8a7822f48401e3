import PrismBase
import PrismProtocol
import PrismStore

// What operators do with stored reports: dead letters, removal, export, trace.
extension ControlDesk {
  private var store: ReportStore { engine.parts.store }

  private func asking<Result>(_ body: () async throws(StoreError) -> Result) async throws(Refused) -> Result {
    do { return try await body() } catch { throw Refused(69, error.description) }
  }

  // MARK: Dead letters

  func listDead(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    let namespace = try namespace(request)
    let letters = try await asking { () async throws(StoreError) in
      try await store.deadLetters(of: namespace, after: request["after"]?.int ?? 0, limit: 1000)
    }
    return [.init("dead", .array(letters.map { .object(describe($0)) }))]
  }

  func showDead(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    guard let number = request["id"]?.int else { throw Refused(64, "dead show: which one? See `prismctl dead list`") }
    let found = try await asking { () async throws(StoreError) in try await store.deadLetter(number) }
    guard let found else { throw Refused(1, "there is no dead letter \(number)") }
    let payload = found.payload.map { JSONValue.Member("payload", .string(Base64.encode($0))) }
    return describe(found.letter) + [.init("meta", Self.meta(found.meta))] + [payload].compactMap { $0 }
  }

  func settleDead(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    let selection: DeadLetterSelection
    if let number = request["id"]?.int {
      selection = .number(number)
    } else if request["all"]?.bool == true {
      selection = .all(try namespace(request))
    } else {
      throw Refused(64, "either an `id` of `prismctl dead list`, or `all`")
    }
    let isRequeue = request.command == .deadRequeue
    let count = try await asking { () async throws(StoreError) in
      isRequeue ? try await store.requeue(selection) : try await store.drop(selection)
    }
    if case .number(let number) = selection, count == 0 { throw Refused(1, "there is no dead letter \(number)") }
    if isRequeue { _ = await engine.flush(try namespace(request)) }
    return [.init(isRequeue ? "requeued" : "dropped", .int(count))]
  }

  private func user(_ userID: UInt32?) -> [JSONValue.Member] {
    userID.map { [.init("userId", .int(Int($0)))] } ?? []
  }

  private func describe(_ letter: DeadLetter) -> [JSONValue.Member] {
    [
      .init("id", .int(letter.number)), .init("namespace", .string(letter.namespace.text)),
      .init("kind", .string(letter.kind.rawValue)), .init("type", .string(letter.type)),
      .init("reportId", .string(letter.reportID)), .init("packetId", .string(letter.packet.description)),
      .init("status", .int(letter.cause.status)), .init("message", .string(letter.cause.message)),
      .init("time", .string(RFC3339.text(unixMilliseconds: letter.cause.unixMilliseconds))),
      .init("attempts", .int(letter.cause.attempts)), .init("bytes", .int(letter.bytes)),
    ] + user(letter.userID)
  }

  private static func meta(_ bytes: [UInt8]) -> JSONValue {
    // A report may have keys that stand twice below its top level; one that is no JSON at all was never stored.
    (try? JSONValue(parsing: bytes, allowsDuplicateKeys: true)) ?? .null
  }

  // MARK: Removal

  func remove(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    guard let namespace = try namespace(request) else { throw Refused(64, "remove: of which namespace?") }
    let selection = try removal(request)
    let count = try await asking { () async throws(StoreError) in try await store.remove(selection, of: namespace) }
    return [.init("removed", .int(count))]
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
    let rows = try await asking { () async throws(StoreError) in try await store.trace(id) }
    guard !rows.isEmpty else {
      throw Refused(
        1, "this report is not held, and was not delivered within the last 24 h; `prismctl status` counts what left how"
      )
    }
    var described: [JSONValue] = []
    for row in rows { described.append(.object(describe(row) + (await present(of: row)))) }
    return [.init("rows", .array(described))]
  }

  /// Of a row that is to be delivered yet: what went wrong since it is there.
  private func present(of row: TracedRow) async -> [JSONValue.Member] {
    switch row.place {
    case .dead, .delivered: return []
    case .waiting, .inFlight: break
    }
    guard let failure = await engine.pipelines[row.namespace]?.deliveries[row.kind].retry.lastFailure,
      failure.unixMilliseconds >= row.createdTime ?? 0
    else { return [] }
    return [.init("lastFailure", describe(failure))]
  }

  private func describe(_ row: TracedRow) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = [
      .init("namespace", .string(row.namespace.text)), .init("kind", .string(row.kind.rawValue)),
    ]
    members += user(row.userID)
    func time(_ key: String, _ milliseconds: Int64) -> JSONValue.Member {
      .init(key, .string(RFC3339.text(unixMilliseconds: milliseconds)))
    }
    func add(_ state: String, _ packet: PacketID? = nil, _ more: [JSONValue.Member] = []) {
      members.append(.init("state", .string(state)))
      if let created = row.createdTime { members.append(time("createdTime", created)) }
      if let packet {
        members += [.init("packetId", .string(packet.description)), time("packetTime", packet.unixMilliseconds)]
      }
      members += more
    }
    switch row.place {
    case .waiting: add("waiting")
    case .inFlight(let packet, let claimed): add("claimed", packet, [time("claimedTime", claimed)])
    case .dead(let number, let packet, let cause):
      let more: [JSONValue.Member] = [
        .init("id", .int(number)), .init("status", .int(cause.status)), .init("message", .string(cause.message)),
      ]
      add("dead", packet, more + [time("time", cause.unixMilliseconds), .init("attempts", .int(cause.attempts))])
    case .delivered(let packet, let receipt):
      let more: [JSONValue.Member] = [
        .init("attempts", .int(receipt.attempts)), .init("duplicate", .bool(receipt.wasDuplicate)),
      ]
      add("delivered", packet, [time("deliveredTime", receipt.unixMilliseconds)] + more)
    }
    return members
  }

  // MARK: Export

  func export(_ request: ControlRequest, _ note: ControlLog) -> AsyncStream<JSONValue> {
    let pager = ExportPager(
      store: store, note: note, only: request["namespace"]?.string.flatMap { NamespaceName($0) },
      kinds: request["kind"]?.string.flatMap(ReportKind.init).map { [$0] } ?? ReportKind.allCases)
    return AsyncStream { await pager.next() }
  }
}

/// Stored rows, one JSON object after another, a page in memory at a time.
private actor ExportPager {
  private static let pageRows = 200

  private let store: ReportStore
  private var queues: [(NamespaceName, ReportKind)]?
  private let only: NamespaceName?
  private let kinds: [ReportKind]
  private var page: ArraySlice<(id: Int64, meta: [UInt8], payload: [UInt8]?)> = []
  private var after: Int64 = 0
  private var isDone = false
  private var exported = 0
  private let note: ControlLog

  init(store: ReportStore, note: ControlLog, only: NamespaceName?, kinds: [ReportKind]) {
    (self.store, self.note, self.only, self.kinds) = (store, note, only, kinds)
  }

  /// The client may go away at any row.
  deinit { note.write([.init("exported", .int(exported))]) }

  /// nil after the last line, which has `"done":true`.
  func next() async -> JSONValue? {
    if isDone { return nil }
    var queues: [(NamespaceName, ReportKind)]
    if let known = self.queues { queues = known } else { queues = await all() }
    while page.isEmpty, let (namespace, kind) = queues.first {
      do {
        page = try await store.export(namespace, kind, after: after, limit: Self.pageRows)[...]
      } catch {
        isDone = true
        note.write(failure: error.description)
        return ["error": ["message": .string(error.description), "exitCode": 69], "done": true]
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

  private func all() async -> [(NamespaceName, ReportKind)] {
    await store.namespaces().filter { only == nil || $0 == only }.flatMap { name in kinds.map { (name, $0) } }
  }

  private func line(
    _ row: (id: Int64, meta: [UInt8], payload: [UInt8]?), _ namespace: NamespaceName, _ kind: ReportKind
  ) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("namespace", .string(namespace.text)), .init("kind", .string(kind.rawValue)),
      .init("meta", (try? JSONValue(parsing: row.meta, allowsDuplicateKeys: true)) ?? .null),  // it is one: checked
    ]
    if let payload = row.payload { members.append(.init("payload", .string(Base64.encode(payload)))) }
    return .object(members)
  }
}
