import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Reports that become one row a window and group (docs/recorder.md, "Reduce").
@Suite struct ReductionTests {
  private let rig = Rig()

  private static func rule(_ change: (inout ReportReduction) -> Void = { _ in }) -> ReportReduction {
    var rule = ReportReduction()
    (rule.type, rule.by, rule.fields) = (Rig.click, ["APP_NAME"], ["n": .histogram])
    change(&rule)
    return rule
  }

  @discardableResult
  private func store(
    _ numbers: some Sequence<Int>, in store: ReportStore, _ rule: ReportReduction = rule(), app: String = "pos",
    priority: Priority = .rest, ids: [String]? = nil,
    quota: StoreQuota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false)
  ) async throws -> BatchOutcome {
    let batch = rig.batch(
      numbers, of: Rig.click, priority: priority, ids: ids, quota: quota,
      context: CommonContext(members: Array("\"APP_NAME\":\"\(app)\"".utf8)))
    let outcome = await store.append([batch], rules: [Rig.shop: ReportRules(reductions: [rule])])
    guard case .committed(let outcomes) = outcome else { throw ModelFailure("not taken") }
    return outcomes[0]
  }

  /// Ends all windows. - Returns: the rows that leave, by the app of their group.
  private func leave(_ store: ReportStore) async throws -> [(app: String, numbers: JSONValue)] {
    rig.time.advance(by: .seconds(61))
    while try await store.maintain() {}
    var rows: [(app: String, numbers: JSONValue)] = []
    while let packet = try await store.claim(rig.claim()) {
      for meta in packet.rows {
        let json = try JSONValue(parsing: meta)
        rows.append((json["APP_NAME"]?.string ?? "", json[ReportReduction.key] ?? .null))
      }
      try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    }
    #expect(try await store.ledger().isBalanced)
    return rows.sorted { $0.app < $1.app }
  }

  @Test("a window and group is one row with count, sum, least, greatest and a histogram, at its end") func rows()
    async throws
  {
    let store = try await rig.open()
    try await self.store(1...100, in: store)
    let outcome = try await self.store(101...200, in: store)
    #expect(outcome.exceptions.count == 100 && Set(outcome.ids).count == 100)
    try await self.store([7], in: store, app: "web")
    rig.time.advance(by: .seconds(58))
    while try await store.maintain() {}
    #expect(try await store.claim(rig.claim()) == nil, "the window is open")
    try await self.store([1000], in: store)
    let rows = try await leave(store)
    #expect(rows.map(\.app) == ["pos", "web"] && rows[1].numbers["count"] == 1)
    let sketch = try #require(rows[0].numbers["fields"]?["n"].flatMap { Sketch(json: $0) })
    #expect(sketch.count == 201 && sketch.sum == 21_100 && sketch.min == 1 && sketch.max == 1000)
    #expect(abs(sketch.percentile(0.5)! - 101) <= 101 * sketch.error)
    let (ledger, filtered) = (try await store.ledger(), try await store.status()[Rig.shop]?[.meta]?.filtered)
    #expect(ledger[.delivered] == 2 && filtered?.collapsed == 200, "each report is in a row or was counted on one")
    try await self.store([5], in: store)
    #expect(try await leave(store).map { $0.numbers["count"] } == [1], "the next window begins with its first report")
    await store.close()
  }

  /// A run of the daemon. - Parameter isKilled: with the files that `keepAsKilled` kept; else it ends in order.
  private func run(isKilled: Bool = false, _ body: (ReportStore) async throws -> Void) async throws {
    let store = try await rig.open()
    await store.markReady()?.value
    try await body(store)
    await store.close()
    if isKilled { rig.restoreKilled() }
  }

  @Test("a report that was answered counts once, also over a kill, and one that was not does not") func kill()
    async throws
  {
    try await run(isKilled: true) { store in
      try await self.store(0..<50, in: store, ids: (0..<50).map { "a\($0)" })
      rig.keepAsKilled()
      try await self.store(50..<60, in: store, ids: (50..<60).map { "a\($0)" })
    }
    try await run(isKilled: true) { store in
      // The sender sends all again that it has no answer of, and some more.
      let outcome = try await self.store(40..<60, in: store, ids: (40..<60).map { "a\($0)" })
      #expect(outcome.exceptions.count { $0.what == .duplicate } == 10)
      let rows = try await leave(store)
      #expect(rows.map { $0.numbers["count"] } == [60] && rows[0].numbers["fields"]?["n"]?["sum"] == 1770)
      rig.keepAsKilled()
    }
    try await run { store in
      let rows = try await leave(store)
      #expect(rows.isEmpty, "no window ends twice")
    }
  }

  @Test("a window that was open before a kill ends after the start, without a further report") func openWindow()
    async throws
  {
    try await run(isKilled: true) { store in
      try await self.store(0..<10, in: store, Self.rule { $0.fields = ["n": .sum] })
      rig.keepAsKilled()
    }
    try await run { store in
      let rows = try await leave(store)
      #expect(rows.map { $0.numbers["count"] } == [10])
      #expect(rows[0].numbers["fields"]?["n"]?.object?.map(\.key) == ["count", "sum", "min", "max"])
    }
  }

  @Test("with keep: ring the reports themselves are kept, too") func ring() async throws {
    let store = try await rig.open()
    let outcome = try await self.store(0..<20, in: store, priority: .kept)
    #expect(outcome.exceptions.isEmpty)
    let rows = try await leave(store)
    let ledger = try await store.ledger()
    #expect(rows.map { $0.numbers["count"] } == [20] && ledger[.kept] == 20 && ledger[.delivered] == 1)
    await store.close()
  }

  @Test("groups that have no room are counted together, by name") func others() async throws {
    let store = try await rig.open()
    let rule = Self.rule { $0.by = ["n"] }
    try await self.store(0..<ReportReduction.groupsMax + 5, in: store, rule)
    let rows = try await leave(store)
    #expect(rows.count == ReportReduction.groupsMax + 1)
    #expect(rows.filter { $0.numbers["others"] == true }.map { $0.numbers["count"] } == [5])
    await store.close()
  }

  @Test("reports that go into windows evict nothing, and a crash is never reduced") func room() async throws {
    let store = try await rig.open()
    let quota = StoreQuota(bytesMax: 3000, evictsOldest: true)
    for number in 0..<10 { _ = await store.append([rig.batch([number], quota: quota)]) }
    let outcome = try await self.store(0..<100, in: store, quota: quota)
    #expect(outcome.exceptions.count == 100)
    let ledger = try await store.ledger()
    #expect(ledger[.waiting] == 10 && ledger[.evicted] == 0)
    let rules = ReportRules(reductions: [Self.rule { $0.type = .any }])
    #expect(rules.reduction(of: .appCrash) == nil && rules.reduction(of: Rig.click) != nil)
    await store.close()
  }

  @Test("a window whose row has no room stays open, and no number is lost") func full() async throws {
    let store = try await rig.open()
    try await self.store(0..<5, in: store, quota: StoreQuota(bytesMax: 10, evictsOldest: false))
    #expect(try await leave(store).isEmpty)
    try await self.store(5..<10, in: store)
    #expect(try await leave(store).map { $0.numbers["count"] } == [10])
    await store.close()
  }
}
