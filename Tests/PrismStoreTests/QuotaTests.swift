import PrismProtocol
import PrismSQLite
import PrismStore
import Testing

@Suite("A namespace's quota is shared by its users")
struct QuotaTests {
  private let rig = Rig()
  /// 500 rows of the rig's.
  private let quota = StoreQuota(bytesMax: 100_000, evictsOldest: true)
  private let quiet: UInt32 = 1000
  private let loud: UInt32 = 0
  private let third: UInt32 = 70_000
  /// Each user's reports tell whose they are by their numbers.
  private let loudFrom = 1_000_000

  private func flood(
    _ store: ReportStore, _ numbers: Range<Int>, by userID: UInt32, priority: Priority = .rest, quota: StoreQuota,
    payload: [UInt8]? = nil
  ) async throws -> Int {
    var refused = 0
    for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 20) {
      let batch = rig.batch(
        start..<min(start + 20, numbers.upperBound), of: priority == .crash ? .appCrash : Rig.order, priority: priority,
        payload: payload, quota: quota, from: userID)
      guard case .committed(let outcomes) = await store.append([batch]) else { throw StoreError.diskFull }
      refused += outcomes[0].exceptions.count
    }
    return refused
  }

  private func held(_ store: ReportStore) async throws -> [Int] {
    try await store.export(Rig.shop, .meta, after: 0, limit: 100_000).map { row in
      try #require(try JSONValue(parsing: row.meta)["n"]?.int)
    }
  }

  @Test(
    "a user who floods, with crashes or without, evicts only rows of the flood", arguments: Priority.leaving,
    [false, true])
  func floods(priority: Priority, isRestarted: Bool) async throws {
    var store: ReportStore? = try await rig.open()
    _ = try await flood(store!, 0..<40, by: quiet, priority: .crash, quota: quota)
    _ = try await flood(store!, 40..<100, by: quiet, quota: quota)
    _ = try await flood(store!, loudFrom..<loudFrom + 300, by: loud, priority: priority, quota: quota)
    if isRestarted {
      await store!.close()
      store = nil
      store = try await rig.open()
    }
    let refused = try await flood(store!, loudFrom + 300..<loudFrom + 3000, by: loud, priority: priority, quota: quota)
    let numbers = try await held(store!)
    #expect(Set(numbers).isSuperset(of: 0..<100), "the quiet user's")
    #expect(refused == 0 && numbers.contains(loudFrom + 2999) && !numbers.contains(loudFrom))
    #expect((396...400).contains(numbers.count - 100), "the rest of the namespace is the flood's")
    #expect(try await store!.ledger().isBalanced)
    await store!.close()
  }

  @Test("two users who both want all of it have an equal share, and one who wants less has what it wants")
  func equalShares() async throws {
    let store = try await rig.open()
    _ = try await flood(store, 0..<60, by: quiet, quota: quota)
    for step in 0..<40 {
      _ = try await flood(store, loudFrom + step * 40..<loudFrom + (step + 1) * 40, by: loud, quota: quota)
      _ = try await flood(store, 2 * loudFrom + step * 20..<2 * loudFrom + (step + 1) * 20, by: third, quota: quota)
    }
    let numbers = try await held(store)
    let counts = [0, 1, 2].map { user in numbers.filter { $0 / loudFrom == user }.count }
    #expect(counts[0] == 60)
    #expect((190...222).contains(counts[1]) && (190...222).contains(counts[2]), "\(counts)")
  }

  @Test("of a user's own rows the crashes go last")
  func crashesLast() async throws {
    let store = try await rig.open()
    _ = try await flood(store, 0..<30, by: loud, priority: .crash, quota: quota)
    _ = try await flood(store, 30..<2000, by: loud, quota: quota)
    let numbers = try await held(store)
    #expect(Array(numbers.prefix(30)) == Array(0..<30))
  }

  @Test(
    "rows in flight and dead letters are held too, though they can't leave: others give way, then reports are refused")
  func stuckRows() async throws {
    let store = try await rig.open()
    _ = try await flood(store, loudFrom..<loudFrom + 400, by: loud, quota: quota)
    let packet = try #require(try await store.claim(rig.claim(items: 200)))
    let dead = try #require(try await store.claim(rig.claim(items: 200)))
    let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 5, attempts: 2)
    try await store.settle(.dead(dead.id, cause: cause))
    #expect(try await flood(store, 0..<300, by: quiet, quota: quota) == 0)
    #expect((98...100).contains(try await held(store).filter { $0 < loudFrom }.count), "what the other leaves")
    #expect(try await store.read(packet.id)?.itemCount == 200)
    // The packet comes back: now its rows make room.
    try await store.settle(.released(packet.id))
    #expect(try await flood(store, 300..<600, by: quiet, quota: quota) == 0)
    #expect((245...255).contains(try await held(store).filter { $0 < loudFrom }.count), "half of it")
    #expect(try await store.requeue(.all(nil)) == 200)
    #expect(try await flood(store, 600..<900, by: quiet, quota: quota) == 0)
    #expect((245...255).contains(try await held(store).filter { $0 < loudFrom }.count))
    #expect(try await store.ledger().isBalanced)
  }

  @Test("maxUserMByte bounds each user, as onFull says, and leaves the others alone", arguments: [true, false])
  func perUser(evictsOldest: Bool) async throws {
    let store = try await rig.open()
    let quota = StoreQuota(bytesMax: 1 << 30, userBytesMax: 20_000, evictsOldest: evictsOldest)
    _ = try await flood(store, 0..<50, by: quiet, quota: quota)
    let refused = try await flood(store, loudFrom..<loudFrom + 200, by: loud, quota: quota)
    let loudest = try await held(store).filter { $0 >= loudFrom }
    #expect(try await held(store).count - loudest.count == 50)
    #expect(refused == (evictsOldest ? 0 : 100))
    if evictsOldest {
      #expect((99...100).contains(loudest.count) && loudest.last == loudFrom + 199)
    } else {
      #expect(loudest == Array(loudFrom..<loudFrom + 100))
      guard case .committed(let outcomes) = await store.append([rig.batch(1...1, quota: quota, from: loud)]),
        case .refused(let refusal)? = outcomes[0].exceptions.first?.what
      else {
        Issue.record("it should have been refused")
        return
      }
      #expect(refusal.code == .storeFull && refusal.message.contains("maxUserMByte"))
    }
  }

  @Test("a report that is larger than its user's share is refused, and evicts no other user's")
  func larger() async throws {
    let store = try await rig.open()
    _ = try await flood(store, 0..<250, by: quiet, priority: .crash, quota: quota)
    #expect(
      try await flood(
        store, loudFrom..<loudFrom + 1, by: loud, quota: quota, payload: [UInt8](repeating: 1, count: 70_000)) == 1)
    #expect(try await held(store).count == 250)
  }

  @Test("what evicted sessions shared leaves with their rows, though another user's older row stays")
  func contextsOfEvicted() async throws {
    let store = try await rig.open { $0.contextsBeforeSweep = 100 }
    func contexts() throws -> Int64 {
      try SQLiteConnection(.init(path: rig.path)).firstInt("SELECT count(*) FROM contexts") ?? -1
    }
    let living = CommonContext(members: Array(#""APP_NAME":"old""#.utf8))
    _ = await store.append([rig.batch(0..<20, quota: quota, context: living, from: quiet)])
    _ = try await flood(store, loudFrom..<loudFrom + 10_000, by: loud, quota: quota)
    let packet = try #require(try await store.claim(rig.claim(items: 100)))
    #expect(try contexts() > 300)
    while try await store.maintain() {}
    #expect(try contexts() <= 40)
    _ = await store.append([rig.batch(20..<40, quota: quota, context: living, from: quiet)])
    let rows = try await store.export(Rig.shop, .meta, after: 0, limit: 10_000)
    #expect(rows.count == (try await store.ledger()[.waiting]) + 100, "each row has its context")
    #expect(try await store.read(packet.id)?.itemCount == 100)
  }

  @Test("the dry run of a new quota names the rows that it then evicts")
  func told() async throws {
    let store = try await rig.open()
    let roomy = StoreQuota(bytesMax: 1 << 30, evictsOldest: true)
    _ = try await flood(store, 0..<100, by: quiet, quota: roomy)
    _ = try await flood(store, loudFrom..<loudFrom + 900, by: loud, quota: roomy)
    let policy = RetentionPolicy(expirationDays: 15, isUpdateClear: true, appVersion: nil, maxBodyBytes: 1 << 20)
    #expect(try await store.dryRun(policy, quota: quota, of: Rig.shop).evicted == 500)
    let bounded = StoreQuota(bytesMax: 1 << 30, userBytesMax: 100_000, evictsOldest: true)
    #expect(try await store.dryRun(policy, quota: bounded, of: Rig.shop).evicted == 400)
    #expect(try await held(store).count == 1000)
    _ = try await flood(store, loudFrom + 900..<loudFrom + 901, by: loud, quota: quota)
    #expect((501...504).contains(try await store.ledger()[.evicted]))
  }
}
