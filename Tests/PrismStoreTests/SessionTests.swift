import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Sessions and crashes are counted in the transaction of what they come with (docs/sessions.md).
@Suite struct SessionTests {
  private let rig = Rig()
  private static let pos = AppVersion(name: "pos", version: "4.2.0")
  private static let crash = ReportType("appCrash")!
  private static let rules = [Rig.shop: ReportRules(countsHealth: true)]

  private func add(
    _ events: [SessionEvent.What], mark: String, of app: AppVersion = pos, from userID: UInt32 = 1000,
    to store: ReportStore
  ) async throws {
    let note = BatchNote(events.map { SessionEvent(app, userID: userID, $0) }, mark: mark, to: Rig.shop)
    guard case .committed = await store.append([], notes: [note]) else { throw ModelFailure("not taken") }
  }

  private func crash(
    _ numbers: Range<Int>, ids: [String]? = nil, context: String = #""APP_NAME":"pos","APP_VERSION":"4.2.0""#,
    in store: ReportStore
  ) async throws {
    let batch = rig.batch(
      numbers, of: Self.crash, priority: .crash, ids: ids, context: CommonContext(members: Array(context.utf8)))
    guard case .committed = await store.append([batch], rules: Self.rules) else { throw ModelFailure("not taken") }
  }

  private func health(_ store: ReportStore) async throws -> AppHealth {
    AppHealth(try await store.note(Rig.shop, AppHealth.noteKey).map { try JSONValue(parsing: $0) } ?? .null)
  }

  private func hour(_ store: ReportStore) async throws -> AppHealth.Hour? {
    try await store.note(Rig.shop, AppHealth.Hour.noteKey).flatMap { AppHealth.Hour(note: $0) }
  }

  @Test(
    "a session with an id counts once, events whose commit has no known outcome count once, and a kill loses no session"
  )
  func exact() async throws {
    for step in 0..<2 {
      let store = try await rig.open()
      await store.markReady()?.value
      if step == 0 {
        try await add([.begin(id: "a"), .begin(id: nil), .use(milliseconds: 1500)], mark: "r 1", to: store)
        try await add([.begin(id: "a"), .begin(id: nil), .use(milliseconds: 1500)], mark: "r 1", to: store)
        try await crash(0..<3, ids: ["x", "x", "y"], in: store)
        rig.keepAsKilled()
        try await crash(3..<4, in: store)
        await store.close()
        rig.restoreKilled()
      } else {
        let counts = try #require(try await health(store).apps[Self.pos])
        #expect((counts.sessions, counts.milliseconds, counts.crashes, counts.crashedSessions) == (2, 1500, 2, 2))
        #expect(try await store.ledger().stored == 2, "as many crashes as are stored")
        try await add([.begin(id: "a")], mark: "s 1", to: store)
        #expect(try await health(store).apps[Self.pos]?.sessions == 2, "it goes on with a new connection")
        await store.close()
      }
    }
  }

  @Test("a crash that is counted on an equal one, or left out by `sample`, counts, and one that is known does not")
  func counted() async throws {
    let store = try await rig.open()
    var batch = rig.batch(
      0..<5, of: Self.crash, priority: .crash,
      context: CommonContext(members: Array(#""APP_NAME":"pos","APP_VERSION":"4.2.0""#.utf8)))
    let repeated = ReportBatch.Repeat(
      high: 1, low: 1, arrivedTime: rig.time.unixMilliseconds, windowMilliseconds: 60_000)
    batch.marks = (0..<4).map { ($0, .repeatable(repeated)) } + [(4, .sampledOut)]
    guard case .committed = await store.append([batch], rules: Self.rules) else { throw ModelFailure("not taken") }
    try await crash(5..<7, ids: ["x", "x"], in: store)
    #expect(try await health(store).apps[Self.pos]?.crashes == 6)
    #expect(try await store.ledger().stored == 2)
    await store.close()
  }

  @Test("an hour is handed over once, and the next one goes on until it is reported")
  func hours() async throws {
    let store = try await rig.open()
    try await add([.begin(id: "a"), .use(milliseconds: 60_000)], mark: "r 1", to: store)
    rig.time.advance(by: .seconds(3599))
    try await add([], mark: "r 2", to: store)
    #expect(try await hour(store) == nil)
    rig.time.advance(by: .seconds(1))
    try await add([.begin(id: "a"), .begin(id: "b")], mark: "r 3", to: store)
    let first = try #require(try await hour(store))
    #expect(first.seconds == 3600 && first.health.apps[Self.pos]?.sessions == 2)
    #expect(try await health(store).isEmpty)
    rig.time.advance(by: .seconds(7200))
    try await add([.begin(id: "a"), .begin(id: "c")], mark: "r 4", to: store)
    #expect(try await hour(store) == first, "it is not reported yet")
    #expect(try await health(store).apps[Self.pos]?.sessions == 1, "the session of the last hour is no new one")
    _ = await store.append([], notes: [BatchNote(namespace: Rig.shop, key: AppHealth.Hour.noteKey, value: [])])
    try await add([], mark: "r 5", to: store)
    let second = try #require(try await hour(store))
    #expect(second.seconds == 7200 && second.health.apps[Self.pos]?.sessions == 1)
    #expect(second.number == 2 && second.book == first.book)
    #expect(try await health(store).isEmpty)
    await store.close()
  }

  @Test("without an event nothing is written") func idle() async throws {
    let store = try await rig.open()
    try await add([], mark: "r 1", to: store)
    #expect(try await store.note(Rig.shop, AppHealth.noteKey) == nil)
    await store.close()
  }

  @Test(
    "a crash counts for the app that it names, or else for the unit",
    arguments: [
      (#""APP_NAME":"pos","APP_VERSION":"1","SYS_PEER_UNIT":"p.service""#, AppVersion(name: "pos", version: "1")),
      (#""APP_NAME":"posd","SYS_PEER_UNIT":"p.service""#, AppVersion(name: "p.service", version: "")),
      (#""APP_NAME":"posd""#, AppVersion(name: "posd", version: "")),
    ]) func apps(context: String, app: AppVersion) async throws
  {
    let store = try await rig.open()
    try await crash(0..<1, context: context, in: store)
    #expect(try await health(store).apps.keys.map { $0 } == [app])
    await store.close()
  }

  @Test("a user takes 20 places of 60, and further apps are counted as left out") func bounds() async throws {
    let store = try await rig.open()
    for (user, wanted) in [(UInt32(1), 20), (2, 40), (3, 60), (4, 60)] {
      for number in 0..<30 {
        let app = AppVersion(name: "\(user)" + String(repeating: "\u{1}", count: 300), version: "\(number)")
        try await add([.begin(id: "\(number)")], mark: "\(user) \(number)", of: app, from: user, to: store)
      }
      #expect(try await health(store).apps.count <= wanted)
    }
    let health = try await health(store)
    #expect(health.apps.count == 60 && health.leftOut == 60)
    let metas = AppHealth.Hour(book: "b", number: 1, seconds: 3600, health: health).metas
    #expect(metas.count > 1 && metas.allSatisfy { $0.bytes.count < 9000 })
    #expect(metas.reduce(0) { $0 + ($1["apps"]?.array?.count ?? 0) } == 60)
    await store.close()
  }
}
