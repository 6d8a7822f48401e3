import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Reports before a crash go with it (docs/sessions.md, "Breadcrumbs").
@Suite struct BreadcrumbTests {
  private let rig = Rig()
  private static let crash = ReportType("appCrash")!
  private static let rules = [Rig.shop: ReportRules(countsHealth: true)]

  private func context(_ app: String, unit: String? = nil) -> CommonContext {
    CommonContext(members: Array((#""APP_NAME":"\#(app)""# + (unit.map { #","SYS_PEER_UNIT":"\#($0)""# } ?? "")).utf8))
  }

  private func store(
    _ numbers: Range<Int>, of type: ReportType = Rig.order, priority: Priority = .rest, app: String = "pos",
    unit: String? = nil, in store: ReportStore
  ) async throws {
    let batch = rig.batch(numbers, of: type, priority: priority, context: context(app, unit: unit))
    guard case .committed = await store.append([batch], rules: Self.rules) else { throw ModelFailure("not taken") }
  }

  /// Stores a crash, and takes it. - Returns: its meta.
  private func crash(
    _ body: String, context: CommonContext, payload: [UInt8]? = nil, metaBytes: Int = 200, in store: ReportStore
  ) async throws -> JSONValue {
    var batch = ReportBatch(
      namespace: Rig.shop, userID: 1000, context: context, quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false))
    batch.types = [.init(type: Self.crash, priority: .crash, isRealtime: false)]
    batch.arena = Array(body.utf8)
    batch.rows = [
      ReportBatch.Row(type: 0, createdTime: rig.time.unixMilliseconds, body: 0..<body.utf8.count, metaBytes: metaBytes)
    ]
    // As admission makes one that names its app itself.
    batch.rows[0].isSelfContained = body.contains("APP_NAME")
    guard case .committed = await store.append([batch], rules: Self.rules) else { throw ModelFailure("not taken") }
    let packet = try #require(try await store.claim(rig.claim(items: 1)))
    try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    return try JSONValue(parsing: try #require(packet.rows.first))
  }

  private func numbers(_ meta: JSONValue) throws -> [Int?] {
    try (meta["breadcrumbs"]?.array ?? []).map { try JSONValue(parsing: $0["text"]?.string ?? "")["n"]?.int }
  }

  @Test("the last 50 reports of the app go with its crash, in their order, from the queue and from the ring")
  func app() async throws {
    let store = try await rig.open()
    try await self.store(0..<40, in: store)
    try await self.store(100..<140, app: "other", in: store)
    try await self.store(40..<70, of: Rig.click, priority: .kept, in: store)
    let meta = try await crash(#""APP_NAME":"pos","reason":"SIGSEGV""#, context: context("prismd"), in: store)
    #expect(try numbers(meta) == Array(20..<70))
    #expect(meta["breadcrumbs"]?.array?.last?["type"] == "click" && meta["reason"] == "SIGSEGV")
    #expect(meta["breadcrumbs"]?.array?.last?["text"] == #"{"n":69}"#, "without the common information")
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced && ledger.stored == 111)
    await store.close()
  }

  @Test("a coredump of a unit has the reports of the unit") func unit() async throws {
    let store = try await rig.open()
    try await self.store(0..<3, unit: "pos.service", in: store)
    try await self.store(3..<6, unit: "other.service", in: store)
    let meta = try await crash(#""reason":"SIGABRT""#, context: context("posd", unit: "pos.service"), in: store)
    #expect(try numbers(meta) == [0, 1, 2])
    await store.close()
  }

  @Test("the program's own notes are among them by their time, and all of it stays within the meta's limit")
  func own() async throws {
    let store = try await rig.open()
    let now = rig.time.unixMilliseconds
    try await self.store(0..<2, in: store)
    let own = #""breadcrumbs":[{"time":\#(now - 1),"text":"before"},{"time":\#(now + 1),"text":"after"}]"#
    let meta = try await crash(#""APP_NAME":"pos",\#(own),"reason":"x""#, context: context("prismd"), in: store)
    let lines = try #require(meta["breadcrumbs"]?.array)
    #expect(lines.count == 4 && lines.first?["text"] == "before" && lines.last?["text"] == "after")
    #expect(meta.object?.count { $0.key == "breadcrumbs" } == 1 && meta["reason"] == "x")
    try await self.store(2..<60, in: store)
    let full = try await crash(
      #""APP_NAME":"pos","reason":"x""#, context: context("prismd"), metaBytes: Limits.metaBytesMax - 200, in: store)
    let fitting = try numbers(full)
    #expect((1..<6).contains(fitting.count) && fitting.last == 59, "the newest ones that fit")
    await store.close()
  }

  @Test("a crash without reports before it stays as it came") func alone() async throws {
    let store = try await rig.open()
    let meta = try await crash(#""APP_NAME":"pos""#, context: context("prismd"), in: store)
    #expect(meta["breadcrumbs"] == nil)
    await store.close()
  }
}
