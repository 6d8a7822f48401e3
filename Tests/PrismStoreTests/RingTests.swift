import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

/// Reports of types with `keep: ring` (docs/recorder.md).
@Suite struct RingTests {
  private let rig = Rig()
  private static let bytesMax = 60_000
  private static let quota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: bytesMax)

  @discardableResult
  private func keep(
    _ store: ReportStore, _ numbers: some Sequence<Int>, payload: [UInt8]? = nil, ids: [String]? = nil,
    quota: StoreQuota = quota, from user: UInt32 = 1000
  ) async throws -> BatchOutcome {
    let batch = rig.batch(
      numbers, of: Rig.click, priority: .kept, payload: payload, ids: ids, quota: quota, from: user)
    guard case .committed(let outcomes) = await store.append([batch]) else { throw ModelFailure("not taken") }
    return outcomes[0]
  }

  /// The numbers of the kept reports, the oldest first.
  private func kept(_ store: ReportStore, _ kind: RowKind = .meta) async throws -> [Int] {
    try await store.export(Rig.shop, kind, after: 0, limit: 100_000).filter { RowID.isKept($0.id) }
      .compactMap { (try? JSONValue(parsing: $0.meta))?["n"]?.int }
  }

  private func age(_ store: ReportStore, hours: Int64) async throws {
    rig.time.move(seconds: hours * 3600)
    while try await store.maintain() {}
  }

  @Test("kept reports are durable and do not leave: not with a claim, an expiry, a new version or a full namespace")
  func stay() async throws {
    let outcome = try await begin()
    let store = try await rig.open()
    #expect(try await kept(store) == Array(0..<10))
    let id = outcome.ids[0].reportID(epoch: outcome.epoch)
    #expect(try await store.trace(id).map(\.place) == [.kept])
    for version in ["1", "2"] {
      let policy = RetentionPolicy(expirationDays: 1, isUpdateClear: true, appVersion: version, maxBodyBytes: 1 << 20)
      try await store.apply([Rig.shop: policy])
    }
    try await age(store, hours: 72)
    let full = StoreQuota(bytesMax: 2000, evictsOldest: true, ringBytesMax: Self.bytesMax)
    _ = await store.append([rig.batch(200..<230, quota: full)])
    #expect(try await kept(store) == Array(0..<10))
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced && ledger[.kept] == 10 && ledger[.overwritten] == 0)
    await store.close()
  }

  @Test(
    "a user who keeps little loses nothing to one who floods, also over a restart, and each has the newest of its own",
    arguments: [nil, 100], [false, true])
  func users(payloadBytes: Int?, isRestarted: Bool) async throws {
    var store: ReportStore? = try await rig.open()
    let payload = payloadBytes.map { [UInt8](repeating: 7, count: $0) }
    try await keep(store!, 0..<20, payload: payload, ids: (0..<20).map { "v\($0)" }, from: 1)
    for round in 0..<400 {
      if isRestarted, round % 100 == 50 {
        await store?.close()
        store = nil
        store = try await rig.open()
      }
      let first = 1000 + round * 30
      try await keep(
        store!, first..<first + 30, payload: payload, ids: (0..<30).map { "f\(first + $0)" }, from: 2)
      if round % 20 == 0 { try await keep(store!, [100 + round / 20], payload: payload, from: 3) }
      let status = try #require(try await store!.status()[Rig.shop])
      #expect(status.values.reduce(0) { $0 + $1.keptBytes } <= Self.bytesMax)
    }
    let numbers = try await kept(store!)
    #expect(numbers.filter { $0 < 100 } == Array(0..<20), "the victim's")
    #expect(numbers.filter { (100..<1000).contains($0) } == Array(100..<120), "of one who goes on keeping little")
    let flooder = numbers.filter { $0 >= 1000 }
    #expect(flooder == Array((flooder.first ?? 0)..<13_000) && flooder.count >= 30, "\(flooder.count)")
    let again = try await keep(store!, 0..<20, ids: (0..<20).map { "v\($0)" }, from: 1)
    #expect(again.exceptions.count == 20, "ids of kept reports are known")
    let ledger = try await store!.ledger()
    #expect(ledger.isBalanced)
    await store!.close()
  }

  @Test("rows of one who keeps little outlive any number of segments, whose small ones are joined")
  func joined() async throws {
    var store: ReportStore? = try await rig.open()
    for round in 0..<400 {
      let first = 1000 + round * 30
      try await keep(store!, first..<first + 30, from: 2)
      if round % 4 == 0 { try await keep(store!, [round / 4], ids: ["s\(round / 4)"], from: 3) }
    }
    #expect(try await kept(store!).filter { $0 < 1000 } == Array(0..<100))
    let again = try await keep(store!, 0..<100, ids: (0..<100).map { "s\($0)" }, from: 3)
    #expect(again.exceptions.count == 100, "ids of kept reports are known")
    #expect(try await store!.ledger().isBalanced)
    await store!.close()
    store = nil
    store = try await rig.open()
    #expect(try await kept(store!).filter { $0 < 1000 } == Array(0..<100))
    await store!.close()
  }

  private func begin() async throws -> BatchOutcome {
    let store = try await rig.open()
    let outcome = try await keep(store, 0..<10)
    _ = await store.append([rig.batch(100..<105)])
    #expect(try await store.claim(rig.claim())?.numbers == Array(100..<105))
    #expect(await !store.hasWaiting(Rig.shop, .meta))
    #expect(try await store.claim(rig.claim()) == nil)
    await store.close()
    return outcome
  }

  @Test("a ring is within its bytes after each commit, and has its newest seven eighths", arguments: [nil, 300])
  func bytes(payloadBytes: Int?) async throws {
    let store = try await rig.open()
    let payload = payloadBytes.map { [UInt8](repeating: 7, count: $0) }
    for round in 0..<100 {
      try await keep(store, round * 30..<round * 30 + 30, payload: payload)
      let status = try #require(try await store.status()[Rig.shop])
      let bytes = status.values.reduce(0) { $0 + $1.keptBytes }
      #expect(bytes <= Self.bytesMax)
      #expect(round < 12 || bytes >= Self.bytesMax * 3 / 4)
      #expect(status.values.allSatisfy { $0.ledger.isBalanced && $0.bytes == 0 })
    }
    let numbers = try await kept(store)
    #expect(numbers == Array((numbers.first ?? 0)..<3000), "the newest, without a gap")
    let ledger = try await store.ledger()
    #expect(ledger[.kept] == numbers.count && ledger[.overwritten] == 3000 - numbers.count)
    await store.close()
  }

  @Test("tables of the ring are used again, and the ring costs no more of them")
  func tables() async throws {
    let store = try await rig.open()
    for round in 0..<300 { try await keep(store, round * 30..<round * 30 + 30) }
    let connection = try SQLiteConnection(.init(path: rig.path, isReadOnly: true))
    let tables = try connection.firstInt("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name GLOB 'm1*'")
    #expect(try #require(tables) <= 16)
    await store.close()
  }

  @Test("neither the quota nor the ring takes the other's place")
  func twoBounds() async throws {
    let store = try await rig.open()
    let tight = StoreQuota(bytesMax: 1000, evictsOldest: false, ringBytesMax: Self.bytesMax)
    _ = await store.append([rig.batch(0..<5, quota: tight)])
    for round in 0..<20 {
      #expect(try await keep(store, round * 30..<round * 30 + 30, quota: tight).exceptions.isEmpty)
    }
    let ledger = try await store.ledger()
    #expect(ledger[.waiting] == 5 && ledger[.overwritten] > 0 && ledger[.evicted] == 0)
    await store.close()
  }

  @Test("a report is overwritten when it was held for the ring's hours, and no wall clock decides that")
  func hours() async throws {
    let store = try await rig.open()
    let policy = RetentionPolicy(
      expirationDays: 15, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20, ringHours: 24)
    try await keep(store, 0..<10)
    try await store.apply([Rig.shop: policy])
    for day in 0..<12 {
      try await age(store, hours: 2)
      try await keep(store, [100 + day])
    }
    #expect(try await kept(store).first == 0)
    try await age(store, hours: 3)
    #expect(try await kept(store).first == 101, "a share of the hours goes together")
    #expect(try await kept(store).last == 111)
    try await age(store, hours: 30)
    #expect(try await kept(store) == [])
    #expect(try await store.ledger()[.overwritten] == 22)
    await store.close()
  }

  @Test("an id that a client gave is free again once its report is overwritten, not before")
  func clientIDs() async throws {
    let store = try await rig.open()
    try await keep(store, [1], ids: ["a"])
    #expect(try await keep(store, [1], ids: ["a"]).exceptions.map(\.what) == [.duplicate])
    for round in 0..<20 { try await keep(store, round * 30 + 10..<round * 30 + 40) }
    #expect(try await keep(store, [2], ids: ["a"]).exceptions.isEmpty)
    await store.close()
  }

  @Test("an operator can remove kept reports, and the ledger says so")
  func remove() async throws {
    let store = try await rig.open()
    try await keep(store, 0..<20, payload: [1, 2, 3])
    _ = await store.append([rig.batch(100..<105)])
    _ = try await store.remove(.oldest(4), of: Rig.shop)
    #expect(try await kept(store) == Array(4..<20))
    _ = try await store.remove(.all, of: Rig.shop)
    for kind in RowKind.reports {
      let ledger = try await store.ledger(Rig.shop, kind)
      #expect(ledger.isBalanced && ledger[.kept] == 0 && ledger[.waiting] == 0)
    }
    #expect(try await store.status()[Rig.shop]?[.payload]?.keptBytes == 0)
    try await keep(store, 30..<40)
    #expect(try await kept(store) == Array(30..<40))
    await store.close()
  }

  @Test("reports of both ways in one batch go each to its place, over kills")
  func mixed() async throws {
    for life in 0..<10 { try await live(rounds: life * 6..<life * 6 + 6) }
    let store = try await rig.open { $0.segmentBytes = 4096 }
    let numbers = try await kept(store)
    #expect(numbers == Array(stride(from: numbers.first ?? 1, to: 1200, by: 2)))
    var left: [Int] = []
    while let packet = try await store.claim(rig.claim()) {
      left += packet.numbers
      try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    }
    let ledger = try await store.ledger()
    #expect(left == Array(stride(from: 1 + 2 * (10 + 17 * 19), to: 1200, by: 2)), "\(ledger)")
    #expect(ledger.isBalanced && ledger[.delivered] == 600 && ledger[.kept] == numbers.count)
    await store.close()
  }

  @Test("a ring is brought over from a database that is set aside, and goes on to wrap")
  func salvaged() async throws {
    for life in 0..<3 { try await live(rounds: life * 2..<life * 2 + 2, isReady: false) }
    let store = try await rig.open()
    while try await store.maintain() {}
    #expect(store.health.setAside == 1)
    #expect(try await kept(store) == Array(stride(from: 0, to: 120, by: 2)))
    var ledger = try await store.ledger()
    #expect(ledger.isBalanced && ledger[.kept] == 60 && ledger[.corrupt] == 0)
    #expect(try await store.status()[Rig.shop]?[.meta]?.keptBytes == 60 * 200)
    for round in 0..<20 { try await keep(store, 2000 + round * 30..<2000 + round * 30 + 30) }
    ledger = try await store.ledger()
    let numbers = try await kept(store)
    #expect(ledger.isBalanced && ledger[.kept] == numbers.count && numbers.count <= 300)
    #expect(numbers == Array((numbers.first ?? 0)..<2600))
    await store.close()
  }

  private func live(rounds: Range<Int>, isReady: Bool = true) async throws {
    let store = try await rig.open { $0.segmentBytes = 4096 }
    if isReady { await store.markReady()?.value }
    for round in rounds {
      var batch = rig.batch(round * 20..<round * 20 + 20, quota: Self.quota)
      batch.types.append(.init(type: Rig.click, priority: .kept, isRealtime: false))
      for index in batch.rows.indices where index % 2 == 0 { batch.rows[index].type = 1 }
      _ = await store.append([batch])
      if round % 3 == 0, let packet = try await store.claim(rig.claim(items: 17)) {
        try await store.settle(.delivered(packet.id, receipt: rig.receipt))
      }
    }
    rig.keepAsKilled()
    await store.close()
    rig.restoreKilled()
  }
}
