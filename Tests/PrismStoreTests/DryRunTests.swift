import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismStore

/// A dry run names the effects that the change has then, and changes nothing itself.
@Suite("Dry run of a configuration")
struct DryRunTests {
  private static let roomy = StoreQuota(bytesMax: 1 << 30, evictsOldest: true)

  private static func policy(
    days: Int = 15, clears: Bool = true, version: String? = nil, bodyMax: Int = 1 << 20
  ) -> RetentionPolicy {
    RetentionPolicy(expirationDays: days, isUpdateClear: clears, appVersion: version, maxBodyBytes: bodyMax)
  }

  /// 300 old rows, 100 young ones, 50 that came late, 5 with a large payload.
  private func filled(_ rig: Rig) async throws -> ReportStore {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...300)])
    rig.time.move(days: 10)
    _ = await store.append([rig.batch(301...400)])
    _ = await store.append([rig.batch(401...450, createdTime: rig.time.unixMilliseconds - 9 * 86_400_000)])
    _ = await store.append([rig.batch(451...455, payload: [UInt8](repeating: 7, count: 5000))])
    try await store.apply([Rig.shop: Self.policy(version: "1")])
    return store
  }

  @Test("expiry, a smaller payload limit and a smaller quota do what they were said to do")
  func retention() async throws {
    let rig = Rig()
    let store = try await filled(rig)
    let before = try await store.status()
    let policy = Self.policy(days: 3, version: "1", bodyMax: 4000)
    let told = try await store.dryRun(policy, quota: Self.roomy, of: Rig.shop)
    let memory = await store.dumped()
    #expect(try await store.dryRun(policy, quota: Self.roomy, of: Rig.shop) == told)
    #expect(told.expired == 300 && told.removed == 5 && told.isComplete)
    #expect(try await store.status() == before)
    #expect(await store.dumped() == memory, "each field of the state is brought back")
    try await store.apply([Rig.shop: policy])
    while try await store.maintain() {}
    #expect(try await store.ledger()[.expired] == told.expired)
    #expect(try await store.ledger(Rig.shop, .payload)[.removed] == told.removed)

    let quota = StoreQuota(bytesMax: 10_000, evictsOldest: true)
    let toEvict = try await store.dryRun(policy, quota: quota, of: Rig.shop).evicted
    let waiting = try await store.ledger()[.waiting]
    #expect(toEvict > 0)
    _ = await store.append([rig.batch(500...500, quota: quota)])
    #expect(
      (0...2).contains(try await store.ledger()[.evicted] - toEvict), "room for the report that came, and to spare")
    #expect(try await store.ledger()[.waiting] == waiting + 1 - (try await store.ledger()[.evicted]))
  }

  @Test("rows are counted by type and kind, more of them than one slice has, those on their way with them")
  func byType() async throws {
    let rig = Rig()
    let store = try await rig.open()
    let other = ReportType("other")!
    _ = await store.append([rig.batch(1...20_500)])
    _ = await store.append([rig.batch(1...3, of: other), rig.batch(4...5, of: other, payload: [1])])
    _ = try #require(try await store.claim(rig.claim(items: 100)))
    let counts = try await store.typeCounts(of: Rig.shop)
    #expect(counts.metas == [Rig.order: 20_500, other: 5] && counts.payloads == [other: 2])
    #expect(counts.isComplete)
    #expect(try await store.typeCounts(of: NamespaceName("unheard")!) == TypeCounts())
  }

  @Test("another version of the app clears what waits; where it does not clear, nothing goes")
  func cleared() async throws {
    let rig = Rig()
    let store = try await filled(rig)
    #expect(try await store.dryRun(Self.policy(version: "2"), quota: Self.roomy, of: Rig.shop).cleared == 460)
    let kept = try await store.dryRun(Self.policy(clears: false, version: "2"), quota: Self.roomy, of: Rig.shop)
    #expect(kept == RetentionEffects())
    try await store.apply([Rig.shop: Self.policy(version: "2")])
    let cleared = try await (store.ledger()[.cleared], store.ledger(Rig.shop, .payload)[.cleared])
    #expect(cleared == (455, 5))
  }

  @Test(
    "the version that the first report of a namespace was stored under is remembered, though nothing was there before")
  func firstVersion() async throws {
    let rig = Rig()
    let store = try await rig.open()
    try await store.apply([Rig.shop: Self.policy(version: "1")])
    _ = await store.append([rig.batch(1...3)])
    try await store.apply([Rig.shop: Self.policy(version: "2")])
    #expect(try await store.ledger()[.cleared] == 3)
  }

  @Test("a quota that refuses tells how much must leave first")
  func refusing() async throws {
    let rig = Rig()
    let store = try await filled(rig)
    let quota = StoreQuota(bytesMax: 1000, evictsOldest: false)
    let told = try await store.dryRun(Self.policy(version: "1"), quota: quota, of: Rig.shop)
    let bytes = try await store.status()[Rig.shop]?.values.reduce(0) { $0 + $1.bytes }
    #expect(told.evicted == 0 && told.overQuotaBytes == (bytes ?? 0) - 1000)
  }

  @Test("rows in flight are left out, and reports can be stored, claimed and settled afterwards")
  func inFlight() async throws {
    let rig = Rig()
    let store = try await filled(rig)
    let packet = try #require(try await store.claim(rig.claim(items: 100)))
    #expect(
      try await store.dryRun(Self.policy(days: 3, version: "1"), quota: Self.roomy, of: Rig.shop).expired == 200)
    _ = await store.append([rig.batch(600...600)])
    try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    #expect(try await store.ledger()[.delivered] == 100)
    #expect(try await store.ledger().isBalanced)
  }

  @Test("rows of a namespace that is not configured any more expire as they would have, after a restart too")
  func retired() async throws {
    let rig = Rig()
    do {
      let store = try await rig.open()
      try await store.apply([Rig.shop: Self.policy(days: 3)])
      _ = await store.append([rig.batch(1...10)])
      try await store.apply([:])
      await store.close()
    }
    let store = try await rig.open()
    try await store.apply([:])
    rig.time.move(days: 2)
    _ = try await store.maintain()
    #expect(try await store.ledger()[.waiting] == 10)
    rig.time.move(days: 2)
    _ = try await store.maintain()
    #expect(try await store.ledger()[.expired] == 10)
  }

  @Test("durability changes while the store is open, and what was stored before and after is there")
  func durability() async throws {
    let rig = Rig()
    let store = try await rig.open()
    for (number, durability) in [(1, StoreOptions.Durability.normal), (2, .full), (3, .normal)] {
      try await store.set(durability)
      _ = await store.append([rig.batch(number...number)])
    }
    #expect(try await store.claim(rig.claim())?.numbers == [1, 2, 3])
    #expect(try await store.ledger().isBalanced)
  }
}

extension ReportStore {
  /// All that it keeps in memory.
  fileprivate func dumped() -> String {
    var text = ""
    dump(state, to: &text)
    return text
  }
}
