import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@Suite("What operators do with stored reports")
struct OperatorTests {
  let rig = Rig()
  private let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 5, attempts: 3)

  @Test("dead letters are listed and shown whole, wait again in their place, or are dropped; the ledger says so")
  func deadLetters() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...2, payload: [1, 2], ids: ["a", "b"]), rig.batch([3])])
    let packet = try #require(try await store.claim(rig.claim(items: 2)))
    try await store.settle(.dead(packet.id, cause: cause))
    let letters = try await store.deadLetters(of: Rig.shop, after: 0, limit: 10)
    #expect(letters.map(\.reportID) == ["a", "b"])
    #expect(letters.map(\.cause) == [cause, cause])
    let shown = try #require(try await store.deadLetter(.number(letters[0].number)))
    #expect(try JSONValue(parsing: shown.meta).sorted == JSONValue(parsing: packet.rows[0]).sorted)
    #expect(try await store.requeue(.report("b")) == 1)
    #expect(try await store.claim(rig.claim())?.numbers == [2, 3])
    #expect(try await store.drop(.all(nil)) == 1)
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced && ledger[.removed] == 1 && ledger[.dead] == 0)
    _ = await store.append([rig.batch([4], ids: ["a"])])
    #expect(try await store.ledger().stored == 3, "the payload of `a` waits: it is a duplicate")
  }

  @Test("a report's id stays known as long as its payload is held, though its meta is given up, and is free after that")
  func twinHeld() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch([1], payload: [1], ids: ["a"])])
    let meta = try #require(try await store.claim(rig.claim()))
    try await store.settle(.dead(meta.id, cause: cause))
    #expect(try await store.drop(.all(nil)) == 1)
    _ = await store.append([rig.batch([1], payload: [1], ids: ["a"])])
    #expect(try await store.ledger(Rig.shop, .payload).stored == 1, "it would come twice")
    let payload = try #require(try await store.claim(rig.claim(Rig.shop, .payload)))
    try await store.settle(.dead(payload.id, cause: cause))
    #expect(try await store.drop(.all(nil)) == 1)
    _ = await store.append([rig.batch([1], payload: [1], ids: ["a"])])
    #expect(try await store.ledger(Rig.shop, .payload).stored == 2)
  }

  @Test("dead letters expire like rows")
  func deadExpire() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch([1])])
    let packet = try #require(try await store.claim(rig.claim()))
    try await store.settle(.dead(packet.id, cause: cause))
    let policy = RetentionPolicy(expirationDays: 15, isUpdateClear: true, appVersion: nil, maxBodyBytes: 1 << 20)
    try await store.apply([Rig.shop: policy])
    rig.time.move(days: 16)
    _ = try await store.maintain()
    let ledger = try await store.ledger()
    #expect(ledger[.expired] == 1 && ledger[.dead] == 0 && ledger.isBalanced)
  }

  @Test(
    "removing takes what was meant, payloads with their reports, and leaves packets in flight alone",
    arguments: [
      (RemovalSelection.all, [Int]()), (.oldest(2), [4, 5, 6]), (.latest(2), [2, 3, 4]),
      (.olderThan(days: 1), [2, 3, 4, 5, 6]), (.olderThan(days: .max), [2, 3, 4, 5, 6]),
      (.report("r3"), [2, 4, 5, 6]), (.report("nobody's"), [2, 3, 4, 5, 6]),
    ])
  func removal(selection: RemovalSelection, left: [Int]) async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...6, payload: [7], ids: (1...6).map { "r\($0)" })])
    let packet = try #require(try await store.claim(rig.claim(items: 1)))
    #expect(try await store.remove(selection, of: Rig.shop) == 5 - left.count)
    #expect((try await store.claim(rig.claim())?.numbers ?? []) == left)
    #expect(try await store.read(packet.id)?.numbers == [1])
    let payloads = try await store.ledger(Rig.shop, .payload)
    #expect(payloads[.removed] == 5 - left.count && payloads.isBalanced)
    #expect(try await store.ledger().isBalanced)
  }

  @Test("an export is every row as it would leave, page after page")
  func export() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...5, payload: [9])])
    let packet = try #require(try await store.claim(rig.claim()))
    var (metas, after) = ([[UInt8]](), Int64(0))
    while case let page = try await store.export(Rig.shop, .meta, after: after, limit: 2), let last = page.last {
      metas += page.map(\.meta)
      after = last.id
    }
    let leaving = try packet.rows.map { try JSONValue(parsing: $0).sorted }
    #expect(try metas.map { try JSONValue(parsing: $0).sorted } == leaving)
    #expect(try await store.export(Rig.shop, .payload, after: 0, limit: 1).first?.payload == [9])
  }

  @Test("a trace says where a report is: waiting, on its way, dead, or delivered and with which receipt")
  func trace() async throws {
    let store = try await rig.open()
    guard case .committed(let outcomes) = await store.append([rig.batch([1]), rig.batch([2], ids: ["mine"])]) else {
      Issue.record("not committed")
      return
    }
    let id = outcomes[0].ids[0].reportID(epoch: outcomes[0].epoch)
    #expect(try await store.trace(id).map(\.place) == [.waiting])
    #expect(try await store.remove(.report(outcomes[1].ids[0].reportID(epoch: "another")), of: Rig.shop) == 0)
    let first = try #require(try await store.claim(rig.claim(items: 1)))
    #expect(try await store.trace(id).map(\.place) == [.inFlight(first.id, claimedTime: rig.time.unixMilliseconds)])
    try await store.settle(.delivered(first.id, receipt: rig.receipt))
    #expect(try await store.trace(id).map(\.place) == [.delivered(first.id, rig.receipt)])
    let second = try #require(try await store.claim(rig.claim()))
    try await store.settle(.dead(second.id, cause: cause))
    #expect(try await store.trace("mine").map(\.place) == [.dead(number: 1, second.id, cause)])
    #expect(try await store.trace("unknown").isEmpty)
  }

  @Test(
    "a trace says that a report was dropped, why and when, by the client's id and by the daemon's, until the daemon ends",
    arguments: [Ledger.Account.expired, .evicted, .cleared, .removed])
  func dropped(account: Ledger.Account) async throws {
    let id = try await drop(as: account)
    #expect(try await rig.open().trace(id).isEmpty)
  }

  /// - Returns: the daemon's id of a report that was dropped.
  private func drop(as account: Ledger.Account) async throws -> String {
    let store = try await rig.open()
    let full = StoreQuota(bytesMax: 2000, evictsOldest: true)
    try await keep(version: "1", store)
    let commit = await store.append([rig.batch([1], ids: ["mine"]), rig.batch([2])])
    let outcomes = if case .committed(let outcomes) = commit { outcomes } else { [BatchOutcome]() }
    let id = outcomes[1].ids[0].reportID(epoch: outcomes[1].epoch)
    switch account {
    case .expired:
      rig.time.move(days: 2)
      while try await store.maintain() {}
    case .evicted: _ = await store.append([rig.batch(10..<40, quota: full)])
    case .cleared: try await keep(version: "2", store)
    default: #expect(try await store.remove(.all, of: Rig.shop) == 2)
    }
    let gone = [TracedRow.Place.dropped(account, unixMilliseconds: rig.time.unixMilliseconds)]
    #expect(try await store.trace("mine").map(\.place) == gone)
    #expect(try await store.trace(id).map(\.place) == gone)
    #expect(try await store.trace("mine").map(\.userID) == [1000])
    _ = await store.append([rig.batch([3], ids: ["mine"], quota: full)])
    #expect(try await store.trace("mine").map(\.place) == [.waiting] + gone, "the id was free again")
    await store.close()
    return id
  }

  private func keep(version: String, _ store: ReportStore) async throws {
    let policy = RetentionPolicy(expirationDays: 1, isUpdateClear: true, appVersion: version, maxBodyBytes: 1 << 20)
    try await store.apply([Rig.shop: policy])
  }

  @Test("a trace says of a dead letter that was given up that it is dropped; its payload is as it was")
  func droppedLetter() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch([1], payload: [1], ids: ["mine"])])
    let packet = try #require(try await store.claim(rig.claim()))
    try await store.settle(.dead(packet.id, cause: cause))
    #expect(try await store.drop(.report("mine")) == 1)
    let gone = TracedRow.Place.dropped(.removed, unixMilliseconds: rig.time.unixMilliseconds)
    #expect(try await store.trace("mine").map(\.place) == [gone, .waiting])
    await store.close()
  }

  @Test("many reports leave, and only the newest of them are known")
  func droppedMany() async throws {
    let store = try await rig.open()
    for round in 0..<20 {
      _ = await store.append([rig.batch(0..<500, ids: (0..<500).map { "r\(round)-n\($0)x" })])
      #expect(try await store.remove(.all, of: Rig.shop) == 500)
    }
    #expect(try await store.trace("r19-n499x").count == 1)
    #expect(try await store.trace("r16-n0x").count == 1)
    #expect(try await store.trace("r0-n0x").isEmpty, "at most 4,096 ids are in memory")
    await store.close()
  }
}
