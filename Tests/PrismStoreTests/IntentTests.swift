import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Reports of a trigger of which the collector is asked first (docs/recorder.md, "A sample of the fleet").
@Suite struct IntentTests {
  private let rig = Rig()
  /// It holds the folder as long as it lives.
  private var held: ReportStore?
  private var store: ReportStore { held! }

  init() async throws { try await open() }

  private static let ringBytes = 60_000
  private static let quota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: ringBytes)
  /// Of `Rig`.
  private static let rowBytes = 200

  private static let rule: ReportTrigger = {
    var rule = ReportTrigger(name: "crash", on: .appCrash)
    (rule.before, rule.after, rule.everySeconds, rule.devicesMax) = (5, 2, 0, 3)
    return rule
  }()

  private mutating func open() async throws {
    held = try await rig.open()
    await store.markReady()?.value
    let policy = RetentionPolicy(
      expirationDays: 15, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20, ringReportQuota: Self.quota)
    try await store.apply([Rig.shop: policy])
  }

  private func keep(
    _ numbers: Range<Int>, payload: [UInt8]? = nil, of type: ReportType = Rig.click, _ priority: Priority = .kept,
    rules: [ReportTrigger] = [rule], users: Range<UInt32> = 1000..<1001
  ) async throws {
    let batches = users.map {
      rig.batch(numbers, of: type, priority: priority, payload: payload, quota: Self.quota, from: $0)
    }
    let outcome = await store.append(batches, rules: [Rig.shop: ReportRules(triggers: rules)])
    guard case .committed = outcome else { throw ModelFailure("not taken") }
  }

  private func fire(_ rules: ReportTrigger..., users: Range<UInt32> = 1000..<1001) async throws {
    try await keep(9999..<10_000, of: .appCrash, .crash, rules: rules.isEmpty ? [Self.rule] : rules, users: users)
  }

  private func leave(_ kind: RowKind = .meta) async throws -> [Int] {
    var left: [Int] = []
    while let packet = try await store.claim(rig.claim(Rig.shop, kind)) {
      left += packet.numbers
      try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    }
    return left.filter { $0 != 9999 }
  }

  private func intents() async throws -> [ReleaseIntent] { try await store.intents(of: Rig.shop) }

  private func decide(leaves: Bool) async throws {
    for intent in try await intents() {
      try await store.decide(intent, of: Rig.shop, leaves: leaves, ringBytesMax: Self.ringBytes)
    }
  }

  private func state() async -> TriggerState {
    await store.triggers[Rig.shop]?["crash"] ?? TriggerState()
  }

  /// Ends the store as a kill does, and opens it again.
  private mutating func kill() async throws {
    rig.keepAsKilled()
    await store.close()
    held = nil
    rig.restoreKilled()
    try await open()
  }

  @Test("rows wait for the answer over kills and a ring that wraps, and leave once after it") mutating func waits()
    async throws
  {
    try await keep(0..<20)
    try await fire()
    try await kill()
    try await keep(50..<51, of: Rig.order, .rest)
    #expect(try await leave() == [50], "nothing of them leaves before the answer")
    for round in 0..<20 { try await keep(100 + round * 30..<130 + round * 30) }
    let asked = try #require(try await intents().first)
    #expect(asked.rule == "crash" && asked.devices == 3 && asked.reports == 7 && asked.bytes == 7 * Self.rowBytes)
    #expect(await state().rows == 0)
    try await decide(leaves: true)
    try await kill()
    #expect(try await intents().isEmpty)
    #expect(try await leave() == [15, 16, 17, 18, 19, 100, 101])
    #expect(try await leave().isEmpty)
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced && ledger[.overwritten] > 0 && ledger[.waiting] == 0)
    let counted = await state()
    #expect(counted.rows == 7 && counted.declined == 0)
    await store.close()
  }

  @Test("if enough devices have sent, the rows are kept again, counted, and the next time asks for them again")
  mutating func declined() async throws {
    try await keep(0..<20, payload: [1, 2, 3])
    try await fire()
    try await decide(leaves: false)
    try await kill()
    #expect(try await leave().isEmpty)
    #expect(try await intents().isEmpty)
    for kind in RowKind.reports {
      let ledger = try await store.ledger(Rig.shop, kind)
      #expect(ledger.isBalanced && ledger[.kept] == 20 && ledger[.waiting] == 0, "\(kind.name)")
    }
    let counted = await state()
    #expect(counted.declined == 1 && counted.rows == 0)
    try await keep(20..<24, payload: [1, 2, 3])
    #expect(try await leave().isEmpty, "what comes after it stays, too")
    try await fire()
    #expect(try await intents().map(\.reports) == [5])
    try await decide(leaves: true)
    #expect(try await leave() == Array(19..<24))
    #expect(try await leave(.payload) == Array(19..<24))
    try await keep(24..<30, payload: [1, 2, 3])
    #expect(try await leave() == [24, 25], "what comes after a yes is not asked about again")
    #expect(try await store.ledger().isBalanced)
    await store.close()
  }

  @Test("rows that are kept again count for the bound and the types of the ring, and are overwritten in their turn")
  func bound() async throws {
    var rule = Self.rule
    (rule.before, rule.after) = (200, 0)
    try await keep(0..<200)
    try await fire(rule)
    for round in 0..<10 { try await keep(200 + round * 25..<225 + round * 25) }
    try await decide(leaves: false)
    let status = try #require(try await store.status()[Rig.shop]?[.meta])
    #expect(status.keptBytes <= Self.ringBytes && status.keptBytes == status.ledger[.kept] * Self.rowBytes)
    #expect(status.ledger[.overwritten] > 0 && status.ledger.isBalanced)
    for round in 0..<40 { try await keep(1000 + round * 25..<1025 + round * 25) }
    #expect(try await store.ledger().isBalanced)
    while try await store.maintain() {}
    rig.time.move(seconds: 3601)
    while try await store.maintain() {}
    let hour = try await store.export(Rig.shop, .meta, after: 0, limit: 100_000)
      .compactMap { try? JSONValue(parsing: $0.meta) }.first { $0["MONITOR_TYPE"] == "shop-ringHealth" }
    let line = try #require(hour?["types"]?.array?.first { $0["type"]?.string == Rig.click.text })
    #expect(line["declined"] == 200 && line["triggered"] == 0, "\(line.text)")
    #expect(line["kept"]?.int == (try await store.ledger()[.kept]))
    await store.close()
  }

  @Test("a trigger that is declined costs nothing of its day's budget") func budget() async throws {
    var rule = Self.rule
    (rule.after, rule.bytesMax) = (0, 5 * Self.rowBytes)
    try await keep(0..<20)
    for leaves in [false, true] {
      try await fire(rule)
      #expect(try await intents().map(\.reports) == [5])
      try await decide(leaves: leaves)
    }
    try await fire(rule)
    #expect(try await intents().isEmpty)
    #expect(await state().overBudget == 1)
    await store.close()
  }

  @Test("a trigger without a sample has the reports that wait for the answer to another, and so has a question")
  func shared() async throws {
    var (other, asked) = (ReportTrigger(name: "all", on: .appCrash), Self.rule)
    (other.before, other.everySeconds, asked.after) = (3, 0, 0)
    try await keep(0..<20, payload: [1, 2, 3])
    try await fire(asked, other)
    #expect(try await intents().map(\.reports) == [2], "the newest three leave")
    #expect(try await leave() == [17, 18, 19])
    #expect(try await leave(.payload) == [17, 18, 19])
    var run = QuestionRun(try Question(["type": .text(Rig.click.text), "rows": .truth(true)])) { _ in true }
    while !run.isComplete { run = try await store.look(run, of: Rig.shop) }
    #expect(run.answer.rows == 17)
    try await decide(leaves: false)
    #expect(try await leave().isEmpty)
    for kind in RowKind.reports {
      let ledger = try await store.ledger(Rig.shop, kind)
      #expect(ledger.isBalanced && ledger[.kept] == 17 && ledger[.waiting] == 0, "\(kind.name)")
    }
    await store.close()
  }

  @Test("16 users whose reports fire it at once make one question, and each report leaves once") func users()
    async throws
  {
    try await keep(0..<200)
    try await fire(users: 1000..<1016)
    #expect(try await intents().map(\.reports) == [80])
    #expect(await state().fired == 16)
    try await decide(leaves: true)
    #expect(try await leave().sorted() == Array(120..<200))
    #expect(await state().rows == 80)
    await store.close()
  }

  @Test("what waits for an answer that never comes expires, is counted, and is asked about no more") func expires()
    async throws
  {
    try await keep(0..<20)
    try await fire()
    rig.time.move(seconds: 16 * 86_400)
    while try await store.maintain() {}
    #expect(try await intents().isEmpty)
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced && ledger[.waiting] == 0 && ledger[.expired] >= 5)
    await store.close()
  }
}
