import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// The hourly report of what became of kept reports (docs/recorder.md, "The hourly report").
@Suite struct RingHealthTests {
  private let rig = Rig()
  private static let quota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: 60_000)
  private static let log = ReportType("log")!
  /// Of `Rig`.
  private static let rowBytes = 200

  private func open(reports: Bool = true) async throws -> ReportStore {
    let store = try await rig.open()
    await store.markReady()?.value
    let policy = RetentionPolicy(
      expirationDays: 15, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20,
      ringReportQuota: reports ? Self.quota : nil)
    try await store.apply([Rig.shop: policy])
    return store
  }

  private func keep(
    _ numbers: Range<Int>, of type: ReportType = Rig.click, in store: ReportStore, payload: [UInt8]? = nil,
    _ triggers: [ReportTrigger] = []
  ) async throws {
    let batch = rig.batch(numbers, of: type, priority: .kept, payload: payload, quota: Self.quota)
    let outcome = await store.append([batch], rules: [Rig.shop: ReportRules(triggers: triggers)])
    guard case .committed = outcome else { throw ModelFailure("not taken") }
  }

  private func hour(_ store: ReportStore) async throws {
    while try await store.maintain() {}  // the hour begins
    rig.time.move(seconds: 3601)
    while try await store.maintain() {}
  }

  /// The reports that wait, by type: kept, bytes, overwritten, triggered, asked, refused.
  private func reports(_ store: ReportStore) async throws -> [[String: [Int]]] {
    let rows = try await store.export(Rig.shop, .meta, after: 0, limit: 100_000)
      .compactMap { try? JSONValue(parsing: $0.meta) }
      .filter { $0["MONITOR_TYPE"] == "shop-ringHealth" }
    return rows.map { row in
      (row["types"]?.array ?? []).reduce(into: [:]) { types, entry in
        let names = ["kept", "bytes", "overwritten", "triggered", "asked", "refused"]
        types[entry["type"]?.string ?? ""] = names.map { entry[$0]?.int ?? -1 }
      }
    }
  }

  @Test("an hour says what is kept and what became of the rest by type, over a restart, and adds up with the ledger")
  func hour() async throws {
    try await fill()
    let store = try await open()  // its segments are counted again
    try await keep(2000..<2010, in: store)
    try await hour(store)
    let ledger = try await store.ledger()
    let first = try #require(try await reports(store).first)
    #expect(try await reports(store).count == 1 && first.keys.sorted() == ["log", Rig.click.text].sorted())
    let (clicks, logs) = (try #require(first[Rig.click.text]), try #require(first["log"]))
    #expect(clicks[0] + logs[0] == ledger[.kept] && clicks[2] + logs[2] == ledger[.overwritten])
    #expect(clicks[0] + clicks[2] == 810 && logs[0] + logs[2] == 200 && clicks[2] > 0)
    #expect(clicks[1] == clicks[0] * Self.rowBytes && clicks[3...] == [0, 0, 0])
    let keptBytes = try await store.status()[Rig.shop]?.values.reduce(0) { $0 + $1.keptBytes }
    #expect(clicks[1] + logs[1] == keptBytes)
    await store.close()
  }

  private func fill() async throws {
    let store = try await open()
    for round in 0..<40 {
      try await keep(round * 20..<round * 20 + 20, in: store)
      try await keep(round * 5..<round * 5 + 5, of: Self.log, in: store, payload: Array(repeating: 7, count: 50))
    }
    await store.close()
  }

  @Test("what triggers let go and what their budget leaves is counted, and the next hour begins at 0") func triggered()
    async throws
  {
    var rule = ReportTrigger(name: "crash", on: .appCrash)
    (rule.before, rule.after, rule.bytesMax, rule.everySeconds) = (10, 2, 7 * Self.rowBytes, 0)
    let store = try await open()
    try await keep(0..<30, in: store)
    _ = await store.append(
      [rig.batch([1], of: .appCrash, priority: .crash)], rules: [Rig.shop: .init(triggers: [rule])])
    try await keep(30..<33, of: Self.log, in: store, [rule])
    try await hour(store)
    #expect(
      try await reports(store) == [
        [Rig.click.text: [23, 23 * Self.rowBytes, 0, 7, 0, 3], "log": [3, 3 * Self.rowBytes, 0, 0, 0, 2]]
      ])
    try await hour(store)
    #expect(try await reports(store).last?[Rig.click.text] == [23, 23 * Self.rowBytes, 0, 0, 0, 0])
    #expect(try await store.ledger().isBalanced)
    await store.close()
  }

  @Test("types have a line of their own up to a bound, and the rest is one line") func bound() async throws {
    let store = try await open()
    for number in 0..<70 { try await keep(0..<1 + number % 3, of: ReportType("type-\(number)")!, in: store) }
    try await hour(store)
    let report = try #require(try await reports(store).first)
    #expect(report.count == 40)
    #expect(report.values.reduce(0) { $0 + $1[0] } == (try await store.ledger()[.kept]))
    #expect(report["other"]?[0] ?? 0 > 1)
    await store.close()
  }

  @Test("without the type in the list, and without anything kept, there is no report", arguments: [true, false])
  func none(isListed: Bool) async throws {
    let store = try await open(reports: isListed)
    if isListed { _ = await store.append([rig.batch([1])]) } else { try await keep(0..<10, in: store) }
    for _ in 0..<2 { try await hour(store) }
    #expect(try await reports(store).isEmpty)
    await store.close()
  }
}
