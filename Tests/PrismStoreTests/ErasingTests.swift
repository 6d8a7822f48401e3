import Glibc
import PrismBase
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Reports that a server has a device erase: their rows, and their bytes (docs/records.md, "Commands").
@Suite("Erasing at the device") struct ErasingTests {
  private static let (secret, other) = ("customer-4711-secret", "customer-0815-stays")
  private static let quota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: 1 << 24)

  private let rig = Rig()
  private let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 5, attempts: 3)

  private static func owned(by value: String = secret) -> @Sendable ([UInt8]) -> Bool {
    { (try? JSONValue(parsing: $0))?["owner"]?["id"]?.string == value }
  }

  /// A connection that ends: of its reports, those with an odd number have the secret in members of their own.
  private func fill(
    _ store: ReportStore, _ numbers: Range<Int>, context: String, priority: Priority = .rest, payload: Bool = false
  ) async {
    var batch = rig.batch(
      numbers, priority: priority, payload: payload ? Array("payload of \(context)".utf8) : nil, quota: Self.quota,
      context: CommonContext(members: Array(#""APP_NAME":"pos","of":"\#(context)""#.utf8)))
    for index in batch.rows.indices {
      let owner = numbers[numbers.startIndex + index] % 2 == 1 ? Self.secret : Self.other
      let start = batch.arena.count
      batch.arena += batch.arena[batch.rows[index].body] + Array(#","owner":{"id":"\#(owner)"}"#.utf8)
      batch.rows[index].body = start..<batch.arena.count
    }
    _ = await store.append([batch])
  }

  private func erase(_ store: ReportStore, _ isMeant: (@Sendable ([UInt8]) -> Bool)?) async throws -> ErasureRun {
    var run = ErasureRun(of: Rig.shop, where: isMeant)
    while !run.isComplete { run = try await store.erase(run) }
    return run
  }

  private func count(_ word: String) throws -> Int {
    try [rig.path, rig.path + "-wal"].reduce(0) { count, path in
      guard access(path, F_OK) == 0 else { return count }
      return count + (try SmallFile.read(path, bytesMax: 1 << 26)).ranges(of: Array(word.utf8)).count
    }
  }

  private func isBalanced(_ store: ReportStore) async throws -> Bool {
    let ledgers = [try await store.ledger(), try await store.ledger(Rig.shop, .payload)]
    return ledgers.allSatisfy { $0.isBalanced }
  }

  @Test("no byte of what is meant stays in its files, be it waiting, kept, dead or delivered, and the others stay")
  func bytes() async throws {
    let store = try await rig.open { $0.segmentBytes = 4096 }
    await fill(store, 0..<100, context: "delivered")
    let delivered = try #require(try await store.claim(rig.claim()))
    try await store.settle(.delivered(delivered.id, receipt: rig.receipt))
    await fill(store, 100..<120, context: "dead")
    let dead = try #require(try await store.claim(rig.claim()))
    try await store.settle(.dead(dead.id, cause: cause))
    await fill(store, 200..<300, context: "kept", priority: .kept)
    await fill(store, 300..<400, context: "waiting", payload: true)
    await fill(store, 400..<410, context: "crash", priority: .crash)
    #expect(try count(Self.secret) > 0)
    let run = try await erase(store, Self.owned())
    #expect(run.json == ["reports": 105, "payloads": 50, "dead": 10, "damaged": 0, "inPackets": 0])
    #expect(try count(Self.secret) == 0)
    #expect(try count("\"delivered\"") == 0, "the context of rows that left")
    let ledger = try await store.ledger()
    #expect(ledger[.waiting] == 55 && ledger[.kept] == 50 && ledger[.dead] == 10)
    #expect(try await isBalanced(store))
    let claimed = try #require(try await store.claim(rig.claim()))
    #expect(claimed.numbers == Array(stride(from: 400, to: 410, by: 2)) + Array(stride(from: 300, to: 400, by: 2)))
  }

  @Test("rows of a packet that may be at the server stay as they were sent, and are counted")
  func inPackets() async throws {
    let store = try await rig.open()
    await fill(store, 0..<10, context: "waiting")
    let claimed = try #require(try await store.claim(rig.claim(items: 4)))
    var run = try await erase(store, Self.owned())
    #expect(run.json == ["reports": 3, "payloads": 0, "dead": 0, "damaged": 0, "inPackets": 2])
    #expect(try await store.read(claimed.id)?.rows == claimed.rows)
    try await store.settle(.delivered(claimed.id, receipt: rig.receipt))
    run = try await erase(store, Self.owned())
    #expect(run.inPackets == 0)
    #expect(try count(Self.secret) == 0)
    #expect(try await isBalanced(store))
  }

  @Test("without a condition nothing of the namespace stays, and the other namespaces keep all")
  func all() async throws {
    let bank = NamespaceName("bank")!
    let store = try await rig.open()
    await fill(store, 0..<5000, context: "waiting")
    await fill(store, 5000..<5010, context: "kept", priority: .kept)
    _ = await store.append([rig.batch(1...3, in: bank)])
    let run = try await erase(store, nil)
    #expect(run.json["reports"] == 5010)
    #expect(try count(Self.secret) + count(Self.other) == 0)
    #expect(try await store.ledger(bank)[.waiting] == 3)
    #expect(try await isBalanced(store))
    await fill(store, 0..<2, context: "later")
    #expect(try await store.claim(rig.claim())?.numbers == [0, 1])
  }

  @Test("an erasure that means nothing, or a namespace that never stored anything, ends") func nothing() async throws {
    let store = try await rig.open()
    await fill(store, 0..<100, context: "waiting")
    #expect(try await erase(store, Self.owned(by: "other")).json["reports"] == 0)
    let nowhere = ErasureRun(of: NamespaceName("nowhere")!, where: nil)
    #expect(try await store.erase(nowhere).isComplete)
    #expect(try await store.ledger()[.waiting] == 100)
  }
}
