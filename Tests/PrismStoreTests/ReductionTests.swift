import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Reports that become one row a window and group (docs/recorder.md, "Reduce").
@Suite struct ReductionTests {
  let rig = Rig()

  private static func rule(_ change: (inout ReportReduction) -> Void = { _ in }) -> ReportReduction {
    var rule = ReportReduction()
    (rule.type, rule.by, rule.fields) = (Rig.click, ["APP_NAME"], ["n": .histogram])
    change(&rule)
    return rule
  }

  @discardableResult
  private func store(
    _ numbers: some Sequence<Int>, in store: ReportStore, _ rule: ReportReduction = rule(), app: String = "pos",
    priority: Priority = .rest, ids: [String]? = nil, userID: UInt32 = 1000,
    quota: StoreQuota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false)
  ) async throws -> BatchOutcome {
    let batch = rig.batch(
      numbers, of: Rig.click, priority: priority, ids: ids, quota: quota,
      context: CommonContext(members: Array("\"APP_NAME\":\"\(app)\"".utf8)), from: userID)
    let outcome = await store.append([batch], rules: [Rig.shop: ReportRules(reductions: [rule])])
    guard case .committed(let outcomes) = outcome else { throw ModelFailure("not taken") }
    return outcomes[0]
  }

  /// Ends all windows. - Returns: the rows that leave, by the app of their group.
  func leave(_ store: ReportStore) async throws -> [(app: String, numbers: JSONValue)] {
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

  @Test("a row says which user it is of, unless it is not known", arguments: [1000, 0, UInt32.max]) func sender(
    userID: UInt32
  ) async throws {
    let store = try await rig.open()
    let rule = Self.rule { $0.by = ["APP_NAME", "SYS_PEER_UID"] }
    for rule in [Self.rule(), rule] { try await self.store([1], in: store, rule, userID: userID) }
    try await store.endWindows(of: Rig.shop)
    let packet = try #require(try await store.claim(rig.claim()))
    for row in packet.rows {
      let users = try JSONValue(parsing: row).object?.filter { $0.key == "SYS_PEER_UID" }.map(\.value)
      #expect(users == (userID == .max ? [] : [.string(String(userID))]))
    }
    await store.close()
  }

  @Test("a flush makes rows of windows that are open, and each report counts once") func flushed() async throws {
    let store = try await rig.open()
    try await self.store(1...7, in: store)
    #expect(await store.openReports(of: Rig.shop) == 7)
    try await store.endWindows(of: Rig.shop)
    let packet = try #require(try await store.claim(rig.claim()))
    #expect(try packet.rows.map { try JSONValue(parsing: $0)[ReportReduction.key]?["count"] } == [7])
    try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    #expect(await store.openReports(of: Rig.shop) == 0)
    try await self.store([8], in: store)
    #expect(try await leave(store).map { $0.numbers["count"] } == [1])
    await store.close()
  }

  /// A run of the daemon. - Parameter isKilled: with the files that `keepAsKilled` kept; else it ends in order.
  func run(isKilled: Bool = false, _ body: (ReportStore) async throws -> Void) async throws {
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

  @Test("one user's groups leave room for those of others") func shares() async throws {
    let store = try await rig.open()
    let rule = Self.rule { $0.by = ["n"] }
    try await self.store(0..<ReportReduction.groupsMax + 5, in: store, rule)
    try await self.store(0..<80, in: store, rule, userID: 2000)
    let rows = try await leave(store)
    #expect(rows.count == ReportReduction.groupsMax + 1 + 63 + 1)
    #expect(rows.filter { $0.numbers["others"] == true }.compactMap { $0.numbers["count"]?.int }.sorted() == [5, 17])
    await store.close()
  }

  @Test("a long key is a group, and one that is too long is counted by name", arguments: [(6000, false), (9000, true)])
  func longKeys(bytes: Int, isOthers: Bool) async throws {
    let store = try await rig.open()
    try await self.store([1], in: store, app: String(repeating: "k", count: bytes))
    let rows = try await leave(store)
    #expect(rows.map { $0.numbers["others"] == true } == [isOthers])
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

  // MARK: Numbers that an input counted together

  /// - Parameter parts: members of a row each.
  func store(
    parts: [String], in store: ReportStore, by: [String] = [], userID: UInt32 = 1000
  ) async throws {
    var batch = ReportBatch(
      namespace: Rig.shop, userID: userID,
      context: CommonContext(members: Array(#""APP_NAME":"pos""#.utf8), reduces: true),
      quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false))
    batch.types = [.init(type: Rig.click, priority: .rest, isRealtime: false)]
    for part in parts {
      let start = batch.arena.count
      batch.arena += part.utf8
      batch.rows.append(
        .init(
          type: 0, createdTime: rig.time.unixMilliseconds, body: start..<batch.arena.count, metaBytes: part.utf8.count))
    }
    let rules = by.isEmpty ? [:] : [Rig.shop: ReportRules(reductions: [Self.rule { $0.by = by }])]
    guard case .committed = await store.append([batch], rules: rules) else { throw ModelFailure("not taken") }
  }

  static func part(_ kind: String, tags: String = "", _ numbers: String) -> String {
    #""metric":"m","kind":"\#(kind)","tags":{\#(tags)},"REDUCED":{\#(numbers)}"#
  }

  @Test("parts of a window are merged over a kill, without a rule of their type") func parts() async throws {
    var sketch = Sketch()
    for number in 1...100 { sketch.add(Double(number)) }
    let timer = Self.part("timer", #""count":100,"value":\#(sketch.json.text)"#)
    let counter = Self.part("counter", #""count":3,"value":{"count":3,"sum":7.5,"min":1,"max":5}"#)
    try await run(isKilled: true) { store in
      try await self.store(parts: [timer, counter, timer], in: store)
      rig.keepAsKilled()
      try await self.store(parts: [timer, counter], in: store)
    }
    try await run { store in
      try await self.store(parts: [counter], in: store)
      let rows = try await leave(store).map(\.numbers).sorted { $0["count"]!.int! < $1["count"]!.int! }
      #expect(rows.map { $0["count"] } == [6, 200])
      #expect(rows[0]["fields"]?["value"] == ["count": 6, "sum": 15, "min": 1, "max": 5])
      let merged = try #require(rows[1]["fields"]?["value"].flatMap { Sketch(json: $0) })
      #expect(merged.count == 200 && merged.sum == 10_100 && abs(merged.percentile(0.5)! - 50) <= 50 * merged.error)
    }
  }

  @Test("a gauge goes on from its value, over windows, a kill and a rest, and leaves no row without reports")
  func gauge() async throws {
    try await run(isKilled: true) { store in
      try await self.store(parts: [Self.part("gauge", #""count":3,"steps":[333,"-10.0","4.0"]"#)], in: store)
      let rows = try await leave(store)
      #expect(rows.map { $0.numbers["gauge"] } == [327])
      #expect(rows[0].numbers["fields"]?["value"] == ["count": 3, "sum": 983, "min": 323, "max": 333])
      rig.keepAsKilled()
    }
    try await run { store in
      #expect(try await leave(store).isEmpty)
      try await self.store(parts: [Self.part("gauge", #""count":1,"steps":["-7.0"]"#)], in: store)
      let rows = try await leave(store)
      #expect(rows.map { $0.numbers["gauge"] } == [320] && rows[0].numbers["count"] == 1)
      rig.time.advance(by: .seconds(86_401))
      while try await store.maintain() {}
      try await self.store(parts: [Self.part("gauge", #""count":1,"steps":["1.0"]"#)], in: store)
      #expect(try await leave(store).map { $0.numbers["gauge"] } == [1], "it is forgotten after a day")
    }
  }

  @Test("different values are counted: exactly up to 255, and beyond within 20 %", arguments: [1, 255, 10_000])
  func distinct(count: Int) async throws {
    let store = try await rig.open()
    var random = SeededRandom(seed: 7)
    let hashes = (0..<count).map { _ in Int.random(in: 0..<1 << 62, using: &random) }
    for from in stride(from: 0, to: count, by: 200) {
      let some = hashes[from..<min(count, from + 200)].map(String.init).joined(separator: ",")
      let part = Self.part("set", #""count":200,"distinct":[\#(some)]"#)
      try await self.store(parts: [part, part], in: store)
    }
    let value = try #require(try await leave(store).first?.numbers["fields"]?["value"])
    let found = try #require(value["sum"]?.double)
    #expect(value["count"] == 1 && abs(found - Double(count)) <= (count < 256 ? 0 : 0.2 * Double(count)), "\(found)")
    await store.close()
  }

  @Test("`by` chooses the tags of a group; without it all do") func tags() async throws {
    let store = try await rig.open()
    let parts = [#""a":"1","b":"1""#, #""a":"1","b":"2""#].map {
      Self.part("counter", tags: $0, #""count":1,"value":{"count":1,"sum":1,"min":1,"max":1}"#)
    }
    try await self.store(parts: parts, in: store)
    #expect(try await leave(store).map { $0.numbers["count"] } == [1, 1])
    try await self.store(parts: parts, in: store, by: ["a"])
    #expect(try await leave(store).map { $0.numbers["count"] } == [2])
    await store.close()
  }

  @Test("gauges that rest make room for groups") func resting() async throws {
    let store = try await rig.open()
    func gauges(_ range: Range<Int>) -> [String] {
      range.map { Self.part("gauge", tags: #""n":"\#($0)""#, #""count":1,"steps":[1]"#) }
    }
    try await self.store(parts: gauges(0..<1000), in: store)
    #expect(try await leave(store).count == 1000)
    try await self.store(parts: gauges(1000..<1100), in: store)
    let rows = try await leave(store)
    #expect(rows.count == 100 && rows.allSatisfy { $0.numbers["others"] == nil })
    await store.close()
  }

  /// - Parameters:
  ///   - gauges: those of a user, which rest.
  ///   - kept: those that keep their values while another user brings groups of new names twice.
  @Test(
    "a user's gauges keep their values while another user brings more groups than there are places",
    arguments: [
      (gauges: 20, kind: "counter", kept: 20, forgotten: 0), (20, "gauge", 20, 980), (900, "counter", 500, 400),
    ])
  func flood(gauges: Int, kind: String, kept: Int, forgotten: Int) async throws {
    let store = try await rig.open()
    func parts(_ count: Int, _ kind: String, _ name: String, _ numbers: String) -> [String] {
      (0..<count).map { Self.part(kind, tags: #""\#(name)":"\#($0)""#, #""count":1,\#(numbers)"#) }
    }
    try await self.store(parts: parts(gauges, "gauge", "own", #""steps":[100]"#), in: store)
    _ = try await leave(store)
    for name in ["a", "b"] {
      let numbers = kind == "gauge" ? #""steps":[1]"# : #""value":{"count":1,"sum":1,"min":1,"max":1}"#
      let flood = parts(1100, kind, name, numbers)
      try await self.store(parts: flood, in: store, userID: 2000)
      _ = try await leave(store)
    }
    try await self.store(parts: parts(gauges, "gauge", "own", #""steps":["1.0"]"#), in: store)
    #expect(try await leave(store).count { $0.numbers["gauge"] == 101 } == kept)
    #expect(try await store.status()[Rig.shop]?[.meta]?.filtered.forgottenGroups == forgotten)
    await store.close()
  }
}
