import PrismBase
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Kept reports that a trigger lets go (docs/recorder.md, "Triggers").
@Suite struct TriggerTests {
  private let rig = Rig()
  private static let crash = ReportType("appCrash")!
  private static let quota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: 60_000)

  private static func trigger(_ change: (inout ReportTrigger) -> Void = { _ in }) -> ReportTrigger {
    var trigger = ReportTrigger(name: "crash", on: crash)
    (trigger.before, trigger.everySeconds) = (5, 0)
    change(&trigger)
    return trigger
  }

  @discardableResult
  private func store(
    _ numbers: some Sequence<Int>, of type: ReportType = Rig.click, priority: Priority = .kept, in store: ReportStore,
    _ rule: ReportTrigger = trigger(), app: String = "pos", payload: [UInt8]? = nil, from user: UInt32 = 1000
  ) async throws -> BatchOutcome {
    let batch = rig.batch(
      numbers, of: type, priority: priority, payload: payload, quota: Self.quota,
      context: CommonContext(members: Array("\"APP_NAME\":\"\(app)\"".utf8)), from: user)
    let outcome = await store.append([batch], rules: [Rig.shop: ReportRules(triggers: [rule])])
    guard case .committed(let outcomes) = outcome else { throw ModelFailure("not taken") }
    return outcomes[0]
  }

  private func fire(
    _ store: ReportStore, _ rule: ReportTrigger = trigger(), app: String = "pos", from user: UInt32 = 1000
  ) async throws {
    try await self.store([9999], of: Self.crash, priority: .crash, in: store, rule, app: app, from: user)
  }

  /// The numbers of every packet, without the crashes.
  private func leave(_ store: ReportStore) async throws -> [Int] {
    var left: [Int] = []
    while let packet = try await store.claim(rig.claim(items: 3)) {
      left += packet.numbers
      try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    }
    return left.filter { $0 != 9999 }
  }

  private func state(_ store: ReportStore) async -> TriggerState {
    await store.triggers[Rig.shop]?["crash"] ?? TriggerState()
  }

  @Test("the reports before a crash leave in their order, behind the crash, with the trigger's name, and once")
  func before() async throws {
    let store = try await rig.open()
    try await self.store(0..<20, in: store)
    try await fire(store)
    #expect(try await store.ledger()[.waiting] == 6)
    let crash = try #require(try await store.claim(rig.claim()))
    #expect(crash.numbers == [9999])
    let packet = try #require(try await store.claim(rig.claim()))
    #expect(packet.numbers == Array(15..<20))
    #expect(String(decoding: packet.metas, as: UTF8.self).contains(#""TRIGGER":"crash""#))
    let again = try #require(try await store.read(packet.id))
    #expect(again.metas == packet.metas, "the same packet is sent again")
    try await store.settle(.released(packet.id))
    #expect(try await leave(store) == Array(15..<20))
    try await store.settle(.delivered(crash.id, receipt: rig.receipt))
    try await fire(store)
    #expect(try await leave(store) == Array(10..<15), "those that left are not let go again")
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced && ledger[.kept] == 10 && ledger[.delivered] == 12)
    await store.close()
  }

  @Test("what was let go outlives a kill, and is not overwritten by a ring that wraps")
  func kill() async throws {
    for (step, numbers) in [0..<40, 40..<41].enumerated() {
      let store = try await rig.open()
      await store.markReady()?.value
      try await self.store(numbers, in: store)
      if step == 0 { try await fire(store) }
      rig.keepAsKilled()
      await store.close()
      rig.restoreKilled()
    }
    let store = try await rig.open()
    await store.markReady()?.value
    for round in 0..<30 { try await self.store(100 + round * 30..<130 + round * 30, in: store) }
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced && ledger[.overwritten] > 400 && ledger[.waiting] == 6)
    #expect(try await leave(store) == Array(35..<40))
    for round in 0..<30 { try await self.store(2000 + round * 30..<2030 + round * 30, in: store) }
    #expect(try await store.ledger().isBalanced)
    await store.close()
  }

  @Test("reports after it leave as they come, no more of them than were asked for")
  func after() async throws {
    let rule = Self.trigger { ($0.before, $0.after) = (0, 4) }
    let store = try await rig.open()
    try await self.store(0..<5, in: store, rule)
    try await fire(store, rule)
    try await self.store(5..<8, in: store, rule)
    #expect(try await leave(store) == [5, 6, 7])
    try await self.store(8..<12, in: store, rule)
    #expect(try await leave(store) == [8])
    await store.close()
  }

  @Test("only reports of the chosen types, and with the same value of a member, leave")
  func chosen() async throws {
    let rule = Self.trigger { ($0.types, $0.same) = ([ReportType(entry: "cl*")!], "APP_NAME") }
    let store = try await rig.open()
    try await self.store(0..<4, in: store, rule)
    try await self.store(4..<8, in: store, rule, app: "other")
    try await self.store(8..<12, of: Rig.order, in: store, rule)
    try await fire(store, rule)
    #expect(try await leave(store) == Array(0..<4))
    await store.close()
  }

  @Test(
    "a condition holds for the values that it says",
    arguments: [
      (ReportTrigger.Condition.equals("7"), [7]), (.range(3...5), [3, 4, 5]), (.range(.min...1), [0, 1]),
      (.contains("7"), []),
    ])
  func conditions(condition: ReportTrigger.Condition, fires: [Int]) async throws {
    let store = try await rig.open()
    let rule = Self.trigger { ($0.on, $0.field, $0.condition, $0.before) = (Rig.order, "n", condition, 1) }
    for number in 0..<10 { try await self.store([number], of: Rig.order, in: store, rule) }
    #expect(try await leave(store) == fires)
    #expect(await state(store).fired == fires.count)
    await store.close()
  }

  @Test("it fires when enough came in time, and not again before its time")
  func counted() async throws {
    let store = try await rig.open()
    let rule = Self.trigger { ($0.count, $0.seconds, $0.everySeconds) = (3, 10, 60) }
    try await self.store(0..<20, in: store, rule)
    for _ in 0..<2 { try await fire(store, rule) }
    rig.time.move(seconds: 11)
    for _ in 0..<2 { try await fire(store, rule) }
    #expect(await state(store).fired == 0)
    try await fire(store, rule)
    #expect(await state(store).fired == 1)
    for _ in 0..<3 { try await fire(store, rule) }
    #expect(await state(store).tooSoon == 1)
    rig.time.move(seconds: 61)
    for _ in 0..<3 { try await fire(store, rule) }
    #expect(await state(store).fired == 2)
    await store.close()
  }

  @Test("an erasure ends what follows, so that the value that the reports share is not noted any more")
  func erased() async throws {
    let store = try await rig.open()
    let rule = Self.trigger { ($0.same, $0.after) = ("APP_NAME", 50) }
    try await self.store(0..<5, in: store, rule, app: "SECRET")
    try await fire(store, rule, app: "SECRET")
    #expect(await state(store).fired == 1)
    var run = ErasureRun(of: Rig.shop, where: nil)
    while !run.isComplete { run = try await store.erase(run) }
    for file in ["prism.db", "prism.db-wal"] {
      let bytes = SmallFile.beginning(of: "\(rig.folder)/\(file)", bytesMax: 1 << 24) ?? []
      #expect(!String(decoding: bytes, as: UTF8.self).contains("SECRET"), "\(file)")
    }
    try await self.store(5..<10, in: store, rule, app: "SECRET")
    #expect(try await store.ledger()[.kept] == 5)
    await store.close()
  }

  @Test("a burst counts at any beginning, and not for longer than the time")
  func burst() async throws {
    let store = try await rig.open()
    let rule = Self.trigger { ($0.count, $0.seconds) = (3, 5) }
    try await self.store(0..<20, in: store, rule)
    for (milliseconds, fired) in [(0, 0), (4300, 0), (1000, 0), (300, 1), (5000, 1), (5000, 1), (4999, 1), (0, 2)] {
      rig.time.advance(by: .milliseconds(milliseconds))
      try await fire(store, rule)
      #expect(await state(store).fired == fired)
    }
    await store.close()
  }

  @Test("what one user fires takes neither the time, the bytes of the day nor what follows from others")
  func users() async throws {
    let store = try await rig.open()
    let rule = Self.trigger { ($0.bytesMax, $0.everySeconds, $0.after) = (8000, 60, 3) }
    try await self.store(0..<60, in: store, rule)
    for _ in 0..<9 {
      try await fire(store, rule, from: 7)
      rig.time.move(seconds: 61)
    }
    var state = await state(store)
    #expect(state.fired == 8 && state.overBudget > 0 && state.rows == 40)
    try await fire(store, rule, from: 8)
    try await fire(store, rule, from: 7)
    try await fire(store, rule, from: 8)
    state = await self.state(store)
    #expect(state.fired == 9 && state.tooSoon == 1, "another user has a sixteenth of the day still")
    #expect(state.rows == 42)
    try await self.store(60..<70, in: store, rule)
    #expect(await self.state(store).rows == 42, "its sixteenth is used up")
    await store.close()
  }

  @Test("what is over the bytes of a day stays kept, and is counted")
  func budget() async throws {
    let store = try await rig.open()
    let rule = Self.trigger { $0.bytesMax = 1600 }
    try await self.store(0..<50, in: store, rule)
    for _ in 0..<4 { try await fire(store, rule) }
    #expect(try await leave(store) == [45, 46, 47, 48, 49, 42, 43, 44])
    var state = await state(store)
    #expect(state.rows == 8 && state.overBudget == 3 && state.fired == 2)
    rig.time.move(days: 1, seconds: 1)
    try await fire(store, rule)
    state = await self.state(store)
    #expect(state.rows == 13)
    await store.close()
  }

  @Test(
    "a payload leaves with its meta; dead letters of a trigger can be queued again; an operator can remove the rest")
  func kinds() async throws {
    let store = try await rig.open()
    try await self.store(0..<10, in: store, payload: [1, 2, 3])
    try await fire(store)
    let payloads = try #require(try await store.claim(rig.claim(Rig.shop, .payload)))
    #expect(payloads.numbers == Array(5..<10))
    let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 5, attempts: 2)
    try await store.settle(.dead(payloads.id, cause: cause))
    #expect(try await store.requeue(.all(nil)) == 5)
    let again = try #require(try await store.claim(rig.claim(Rig.shop, .payload)))
    #expect(again.numbers == Array(5..<10) || again.itemCount == 1)
    try await store.settle(.delivered(again.id, receipt: rig.receipt))
    _ = try await store.remove(.all, of: Rig.shop)
    for kind in RowKind.reports {
      let ledger = try await store.ledger(Rig.shop, kind)
      #expect(ledger.isBalanced && ledger[.waiting] == 0 && ledger[.kept] == 0)
    }
    await store.close()
  }

  @Test("rows that were let go expire as others do")
  func expire() async throws {
    let store = try await rig.open()
    try await store.apply([
      Rig.shop: RetentionPolicy(
        expirationDays: 1, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20, ringHours: 700)
    ])
    try await self.store(0..<10, in: store)
    try await fire(store)
    rig.time.move(days: 3)
    while try await store.maintain() {}
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced && ledger[.expired] == 6 && ledger[.kept] == 5)
    await store.close()
  }
}
