import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@Suite("Runs of report ids") struct RunTests {
  private static let size = 100
  private let rig = Rig()

  /// The reports `numbers` of the run `prefix`, in two batches if there are enough.
  private func batches(
    _ numbers: some Collection<Int>, of prefix: String = "f-", size: Int = size, from userID: UInt32 = 1000,
    quota: StoreQuota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false)
  ) -> [ReportBatch] {
    let halves = [numbers.prefix(numbers.count / 2), numbers.dropFirst(numbers.count / 2)]
    var batches = halves.filter { !$0.isEmpty }.map { part in
      rig.batch(part, ids: part.map { "\(prefix)\($0)" }, quota: quota, from: userID)
    }
    let run = ReportIDRun(ReportID(prefix)!, first: 0, count: size)!
    batches[0].run = ReportBatch.Run(run, batchCount: batches.count, isWhole: numbers.count == size)
    return batches
  }

  private enum Answer: Hashable { case stored, duplicate, collapsed, refused }

  /// - Returns: how many reports were answered in each way.
  private func append(_ batches: [ReportBatch], to store: ReportStore) async throws -> [Answer: Int] {
    guard case .committed(let outcomes) = await store.append(batches) else { throw Failed() }
    var counts: [Answer: Int] = [:]
    for (batch, outcome) in zip(batches, outcomes) {
      #expect(outcome.ids.count == batch.rows.count)
      counts[.stored, default: 0] += batch.rows.count - outcome.exceptions.count
      for (_, what) in outcome.exceptions {
        switch what {
        case .duplicate: counts[.duplicate, default: 0] += 1
        case .collapsed: counts[.collapsed, default: 0] += 1
        case .refused, .sampledOut: counts[.refused, default: 0] += 1
        }
      }
    }
    return counts.filter { $0.value > 0 }
  }

  private struct Failed: Error {}

  /// The store as a `kill -9` after `work` leaves it.
  private func reopened(_ work: (ReportStore) async throws -> Void) async throws -> ReportStore {
    do {
      let store = try await rig.open()
      try await work(store)
      rig.keepAsKilled()
      await store.close()
    }
    rig.restoreKilled()
    return try await rig.open()
  }

  private func reportIDs(_ store: ReportStore) async throws -> [String] {
    try await store.export(Rig.shop, .meta, after: 0, limit: 10_000).map {
      try JSONValue(parsing: $0.meta)["REPORT_ID"]?.string ?? ""
    }
  }

  @Test("a run is stored once, over a kill, and each row has its own id")
  func once() async throws {
    let store = try await reopened { store async throws in
      #expect(try await append(batches(0..<100), to: store) == [.stored: 100])
    }
    #expect(try await append(batches(0..<100), to: store) == [.duplicate: 100])
    #expect(try await append(batches([5, 7]), to: store) == [.duplicate: 2])
    #expect(try await reportIDs(store) == (0..<100).map { "f-\($0)" })
  }

  @Test("a run that comes twice in one commit is stored once")
  func twice() async throws {
    let store = try await rig.open()
    #expect(try await append(batches(0..<100) + batches(0..<100), to: store) == [.stored: 100, .duplicate: 100])
  }

  @Test("runs of two users, of two prefixes and of two lengths are apart")
  func apart() async throws {
    let store = try await rig.open()
    let all = batches(0..<100) + batches(0..<100, from: 0) + batches(0..<100, of: "g-")
    #expect(try await append(all, to: store) == [.stored: 300])
    #expect(try await append(all, to: store) == [.duplicate: 300])
  }

  @Test("of a run whose reports came in parts each is stored once, also when the whole run comes at last")
  func parts() async throws {
    let store = try await reopened { store async throws in
      #expect(try await append(batches(0..<60), to: store) == [.stored: 60])
      #expect(try await append(batches(50..<70), to: store) == [.stored: 10, .duplicate: 10])
    }
    #expect(try await append(batches(0..<100), to: store) == [.stored: 30, .duplicate: 70])
    #expect(try await append(batches(0..<100), to: store) == [.duplicate: 100])
    #expect(Set(try await reportIDs(store)).count == 100)
  }

  @Test("of a run for which there is no room, the stored reports are known, and the others are stored later")
  func full() async throws {
    let store = try await rig.open()
    let quota = StoreQuota(bytesMax: 200 * 30, evictsOldest: false)
    let first = try await append(batches(0..<100, quota: quota), to: store)
    #expect(first == [.stored: 30, .refused: 70])
    #expect(try await append(batches(0..<100), to: store) == [.stored: 70, .duplicate: 30])
    #expect(try await append(batches(0..<100), to: store) == [.duplicate: 100])
  }

  @Test("a run stays known while its rows are evicted, and 24 h after its commit")
  func eviction() async throws {
    let store = try await rig.open()
    let quota = StoreQuota(bytesMax: 200 * 100, evictsOldest: true)
    #expect(try await append(batches(0..<100, quota: quota), to: store) == [.stored: 100])
    #expect(try await append(batches(0..<100, of: "g-", quota: quota), to: store) == [.stored: 100])
    #expect(try await append(batches(0..<100, quota: quota), to: store) == [.duplicate: 100])
    rig.time.move(days: 1, seconds: 1)
    _ = try await store.maintain()
    #expect(try await append(batches(0..<100, quota: quota), to: store) == [.stored: 100])
  }

  @Test("equal reports of a run are counted once, however often it comes")
  func collapsed() async throws {
    let store = try await rig.open()
    let repeated = ReportBatch.Repeat(
      high: 1, low: 1, arrivedTime: rig.time.unixMilliseconds, windowMilliseconds: 60_000)
    let marked = batches(0..<100).map { batch in
      var batch = batch
      batch.marks = batch.rows.indices.map { ($0, .repeatable(repeated)) }
      return batch
    }
    #expect(try await append(marked, to: store) == [.stored: 1, .collapsed: 99])
    #expect(try await append(marked, to: store) == [.duplicate: 100])
  }

  @Test("what was stored under its own id, before there were runs, is a duplicate in one")
  func before() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(0..<100, ids: (0..<100).map { "f-\($0)" })])
    #expect(try await append(batches(0..<100), to: store) == [.duplicate: 100])
  }

  @Test("a report of a run is traced by its own id, waiting, in flight, delivered and dead")
  func traced() async throws {
    let store = try await rig.open()
    _ = try await append(batches(0..<100), to: store)
    #expect(try await store.trace("f-41").map(\.place) == [.waiting])
    #expect(try await store.trace("f-100").isEmpty)
    #expect(try await store.trace("f-").isEmpty)
    let packet = try #require(try await store.claim(rig.claim(items: 42)))
    let claimed = rig.time.unixMilliseconds
    #expect(try await store.trace("f-41").map(\.place) == [.inFlight(packet.id, claimedTime: claimed)])
    try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    #expect(try await store.trace("f-41").map(\.place) == [.delivered(packet.id, rig.receipt)])
    #expect(try await store.trace("f-42").map(\.userID) == [1000])
  }

  @Test("a dead letter of a run is queued again under its own id")
  func dead() async throws {
    let store = try await rig.open()
    _ = try await append(batches(0..<100), to: store)
    let packet = try #require(try await store.claim(rig.claim()))
    let cause = Disposition.DeadCause(status: 400, message: "no", unixMilliseconds: 5, attempts: 1)
    try await store.settle(.dead(packet.id, cause: cause))
    #expect(try await store.requeue(.all(nil)) == 100)
    #expect(try await reportIDs(store) == (0..<100).map { "f-\($0)" })
  }

  /// In any order of wholes, parts, kills and deliveries each report is stored once.
  @Test("in 40 random histories each report of a run is stored once")
  func histories() async throws {
    let seed = SeededRandom.announcedSeed("RunTests")
    var random = SeededRandom(seed: seed)
    for _ in 0..<40 { try await history(&random) }
  }

  private func history(_ random: inout SeededRandom) async throws {
    let rig = Rig()
    var (sent, storedCount): (Set<Int>, Int) = ([], 0)
    for _ in 0..<Int.random(in: 2...4, using: &random) {
      let store = try await rig.open()
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let part = random.oneIn(2) ? Array(0..<100) : [0] + (1..<100).filter { _ in random.oneIn(3) }
        storedCount += try await append(batches(part), to: store)[.stored] ?? 0
        sent.formUnion(part)
        #expect(storedCount == sent.count)
      }
      if let packet = try await store.claim(rig.claim(items: 30)) {
        try await store.settle(.delivered(packet.id, receipt: rig.receipt))
      }
      rig.keepAsKilled()
      await store.close()
      rig.restoreKilled()
    }
  }
}
