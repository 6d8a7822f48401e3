import Foundation
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Reports of types with `keep: memory` (docs/recorder.md, "In memory").
@Suite struct MemoryRingTests {
  private let rig = Rig()
  private let folder = TemporaryFolder(in: "/dev/shm")
  private static let bytesMax = 60_000
  private static let quota = StoreQuota(
    bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: bytesMax, memoryBytesMax: bytesMax)
  private static let rule: ReportTrigger = {
    var rule = ReportTrigger(name: "crash", on: .appCrash)
    (rule.before, rule.after, rule.everySeconds) = (6, 2, 0)
    return rule
  }()

  private func open(
    boot: String = "a", folder: String? = nil, hours: Int = 168, reports: Bool = false
  ) async throws -> ReportStore {
    let store = try await rig.open { $0.bootID = boot }
    await store.markReady()?.value
    let policy = RetentionPolicy(
      expirationDays: 15, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20, ringHours: hours,
      ringReportQuota: reports ? Self.quota : nil, memoryFolder: folder ?? self.folder("m"))
    try await store.apply([Rig.shop: policy])
    return store
  }

  /// One run of the daemon.
  private func run<T>(boot: String = "a", _ body: (ReportStore) async throws -> T) async throws -> T {
    let store = try await open(boot: boot)
    let result = try await body(store)
    await store.close()
    return result
  }

  private func batch(
    _ numbers: some Sequence<Int>, of type: ReportType = Rig.click, inMemory: Bool = true, payload: [UInt8]? = nil,
    ids: [String]? = nil
  ) -> ReportBatch {
    var batch = rig.batch(numbers, of: type, priority: .kept, payload: payload, ids: ids, quota: Self.quota)
    batch.types = [.init(type: type, priority: .kept, isRealtime: false, isInMemory: inMemory)]
    return batch
  }

  @discardableResult
  private func keep(
    _ store: ReportStore, _ numbers: some Sequence<Int>, inMemory: Bool = true, payload: [UInt8]? = nil,
    ids: [String]? = nil
  ) async throws -> BatchOutcome {
    try await append(store, [batch(numbers, inMemory: inMemory, payload: payload, ids: ids)])[0]
  }

  private func append(_ store: ReportStore, _ batches: [ReportBatch]) async throws -> [BatchOutcome] {
    let outcome = await store.append(batches, rules: [Rig.shop: ReportRules(triggers: [Self.rule])])
    guard case .committed(let outcomes) = outcome else { throw ModelFailure("not taken: \(outcome)") }
    return outcomes
  }

  private func fire(_ store: ReportStore) async throws {
    _ = try await append(store, [rig.batch([9999], of: .appCrash, priority: .crash, quota: Self.quota)])
  }

  private func leave(_ store: ReportStore, _ kind: RowKind = .meta) async throws -> [Int] {
    var left: [Int] = []
    while let packet = try await store.claim(rig.claim(Rig.shop, kind)) {
      left += packet.numbers
      try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    }
    return left.filter { $0 != 9999 }
  }

  private func kept(_ store: ReportStore, _ kind: RowKind = .meta) async throws -> [Int] {
    try await store.export(Rig.shop, kind, after: 0, limit: 100_000).filter { RowID.isKept($0.id) }
      .compactMap { (try? JSONValue(parsing: $0.meta))?["n"]?.int }
  }

  private func status(_ store: ReportStore, _ kind: RowKind = .meta) async throws -> QueueStatus {
    let status = try #require(try await store.status()[Rig.shop]?[kind])
    #expect(status.ledger.isBalanced, "\(kind)")
    return status
  }

  /// The file in memory.
  private var path: String {
    get throws {
      let names = try FileManager.default.contentsOfDirectory(atPath: folder("m")).filter { $0.hasSuffix(".db") }
      return folder("m/" + (try #require(names.first)))
    }
  }

  private func onDisk() throws -> [Data] {
    try ["", "-wal"].map { try Data(contentsOf: URL(fileURLWithPath: rig.path + $0)) }
  }

  @Test("reports in memory outlive the daemon, do not leave, and change no byte on the disk")
  func stay() async throws {
    let (numbers, metas, payloads) = try await run { (store) async throws in
      try await keep(store, 0..<300)
      let before = try onDisk()
      for round in 0..<30 {
        try await keep(
          store, 300 + round * 5..<305 + round * 5, payload: [1, 2], ids: (0..<5).map { "\(round)-\($0)" })
      }
      #expect(try onDisk() == before)
      let id = try await keep(store, [450]).ids[0].reportID(epoch: store.epoch)
      #expect(try await store.trace(id).map(\.place) == [.kept])
      #expect(try await store.claim(rig.claim()) == nil)
      return (try await kept(store), try await status(store), try await status(store, .payload))
    }
    #expect(numbers.last == 450 && numbers.count > 100)
    #expect(metas.inMemory.rows == numbers.count && metas.inMemory.bytes == metas.keptBytes && metas.bytes == 0)
    try await run { (store) async throws in
      #expect(try await kept(store) == numbers)
      #expect(try await status(store) == metas)
      #expect(try await status(store, .payload) == payloads)
    }
  }

  @Test(
    "after a restart of the machine what was kept is counted by name, and no number is given twice",
    arguments: ["boot", "removed", "damaged"])
  func power(how: String) async throws {
    let (last, before) = try await run { (store) async throws in
      try await keep(store, 0..<50, payload: [1], ids: (0..<50).map { "i\($0)" })
      try await keep(store, 100..<110, inMemory: false)
      return (try await keep(store, [50]).ids[0], try await status(store))
    }
    if how == "removed" { try FileManager.default.removeItem(atPath: path) }
    if how == "damaged" { try Data(repeating: 7, count: 9000).write(to: URL(fileURLWithPath: path)) }
    let boot = how == "boot" ? "b" : "a"
    for _ in 0..<2 {
      try await run(boot: boot) { (store) async throws in
        let after = try await status(store)
        #expect(after.inMemory == KeptInMemory(rows: 0, bytes: 0, lost: 51))
        #expect(after.ledger.stored == before.ledger.stored && after.ledger[.kept] == 10)
        #expect(after.ledger[.overwritten] == 51)
        #expect(try await status(store, .payload).inMemory.lost == 50)
      }
    }
    try await run(boot: boot) { (store) async throws in
      let outcome = try await keep(store, [1], ids: ["i1"])
      #expect(outcome.exceptions.isEmpty && outcome.ids[0] > last)
      #expect(try await kept(store) == Array(100..<110) + [1])
    }
  }

  @Test("without an end in order, too, the reports that a packet counted are counted as lost")
  func suddenPower() async throws {
    try await run { (store) async throws in
      try await keep(store, 0..<20)
      _ = try await append(store, [rig.batch([7], quota: Self.quota)])
      let packet = try #require(try await store.claim(rig.claim()))
      #expect(packet.ledgerHeader.contains("stored=21;") && packet.ledgerHeader.contains("kept=20;"))
      try await keep(store, 20..<25)
      rig.keepAsKilled()
    }
    rig.restoreKilled()
    try await run(boot: "b") { (store) async throws in
      let status = try await status(store)
      #expect(status.ledger.stored == 21 && status.inMemory.lost == 20 && status.ledger[.overwritten] == 20)
    }
  }

  @Test("a trigger lets the newest reports of both rings go, in their order, and each leaves once")
  func trigger() async throws {
    let store = try await open()
    for number in 0..<20 { try await keep(store, [number], inMemory: number % 3 > 0, payload: [UInt8(number)]) }
    try await fire(store)
    #expect(try await status(store).inMemory.rows == 9)
    for number in 20..<24 { try await keep(store, [number], inMemory: number % 2 == 0, payload: [1]) }
    #expect(try await leave(store) == Array(14..<22))
    #expect(try await leave(store, .payload) == Array(14..<22))
    #expect(try await kept(store) == Array(0..<14) + [22, 23])
    for kind in RowKind.reports {
      let ledger = try await status(store, kind).ledger
      let crashes = kind == .meta ? 1 : 0
      #expect(ledger[.delivered] == 8 + crashes && ledger[.kept] == 16 && ledger.stored == 24 + crashes)
    }
    await store.close()
  }

  @Test("a kill between the two commits neither doubles nor loses what was let go")
  func betweenCommits() async throws {
    let before = try await run { (store) async throws in
      try await keep(store, 0..<20, payload: [5], ids: (0..<20).map { "k\($0)" })
      let before = try Data(contentsOf: URL(fileURLWithPath: path))
      try await fire(store)
      return before
    }
    try before.write(to: URL(fileURLWithPath: path))
    try await run { (store) async throws in
      #expect(try await kept(store) == Array(0..<20))
      for kind in RowKind.reports {
        let status = try await status(store, kind)
        #expect(status.inMemory.rows == 14 && status.ledger[.kept] == 14 && status.ledger[.waiting] >= 6)
      }
      #expect(try await leave(store) == Array(14..<20))
      #expect(try await leave(store, .payload) == Array(14..<20))
      #expect(try await keep(store, [19, 3], ids: ["k19", "k3"]).exceptions.map(\.what) == [.duplicate, .duplicate])
    }
  }

  @Test("a question finds the reports of both rings, each once")
  func question() async throws {
    let store = try await open()
    for number in 0..<12 { try await keep(store, [number], inMemory: number % 2 == 0) }
    var count = QuestionRun(try Question(["type": .text(Rig.click.text)])) { _ in true }
    while !count.isComplete { count = try await store.look(count, of: Rig.shop) }
    #expect(count.answer.rows == 12 && count.answer.looked == 12)
    await store.close()
  }

  @Test("an erasure reaches memory, and no byte of the reports stays in its file")
  func erase() async throws {
    let store = try await open()
    try await keep(store, 100..<140, payload: Array("secret payload".utf8))
    try await keep(store, 0..<3, inMemory: false)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)).ranges(of: Data("secret payload".utf8)).count == 40)
    var run = ErasureRun(of: Rig.shop) { (try? JSONValue(parsing: $0))?["n"]?.int ?? 0 >= 120 }
    while !run.isComplete { run = try await store.erase(run) }
    #expect(run.json["reports"] == 20 && run.json["payloads"] == 20)
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    #expect(bytes.ranges(of: Data("secret payload".utf8)).count == 20)
    #expect(bytes.ranges(of: Data(#""n":125"#.utf8)).isEmpty)
    #expect(try await kept(store) == Array(100..<120) + Array(0..<3))
    #expect(try await status(store).ledger[.removed] == 20)
    await store.close()
  }

  @Test("each ring is within its own bytes and hours, and both wrap")
  func bounds() async throws {
    let store = try await open(hours: 24)
    for round in 0..<60 {
      try await keep(store, round * 30..<round * 30 + 30, payload: [3])
      try await keep(store, 5000 + round * 30..<5030 + round * 30, inMemory: false)
      let all = [try await status(store), try await status(store, .payload)]
      #expect(all.reduce(0) { $0 + $1.inMemory.bytes } <= Self.bytesMax)
      #expect(all.reduce(0) { $0 + $1.keptBytes - $1.inMemory.bytes } <= Self.bytesMax)
    }
    let numbers = try await kept(store).filter { $0 < 5000 }
    #expect(numbers == Array(numbers[0]..<1800) && numbers.count > 80, "the newest, without a gap")
    rig.time.move(seconds: 30 * 3600)
    while try await store.maintain() {}
    #expect(try await kept(store) == [])
    #expect(try await status(store).ledger[.overwritten] == 3600)
    await store.close()
  }

  @Test("an id that a client gave is known in both rings, and free once its report is overwritten")
  func clientIDs() async throws {
    let store = try await open()
    try await keep(store, [1], ids: ["a"])
    try await keep(store, [2], inMemory: false, ids: ["b"])
    for inMemory in [false, true] {
      let outcome = try await keep(store, [1, 2], inMemory: inMemory, ids: ["a", "b"])
      #expect(outcome.exceptions.map(\.what) == [.duplicate, .duplicate], "\(inMemory)")
    }
    for round in 0..<20 { try await keep(store, round * 30 + 10..<round * 30 + 40) }
    #expect(try await keep(store, [3, 4], ids: ["a", "b"]).exceptions.map(\.what) == [.duplicate])
    await store.close()
  }

  @Test("an operator removes reports of both rings in the order of their arrival")
  func remove() async throws {
    let store = try await open()
    for number in 0..<10 { try await keep(store, [number], inMemory: number % 2 == 0, payload: [9]) }
    #expect(try await store.remove(.oldest(3), of: Rig.shop) == 3)
    #expect(try await kept(store) == Array(3..<10))
    #expect(try await store.remove(.all, of: Rig.shop) == 7)
    #expect(try await kept(store, .payload) == [])
    #expect(try await status(store).ledger[.removed] == 10)
    await store.close()
  }

  @Test("without its folder such reports are refused and all others are taken; a reload finds the folder again")
  func noFolder() async throws {
    try folder.write("", to: "file")
    let store = try await open(folder: folder("file/m"))
    #expect(try await keep(store, [1, 2]).exceptions.count == 2)
    #expect(try await keep(store, [3], inMemory: false).exceptions.isEmpty)
    let policy = RetentionPolicy(
      expirationDays: 15, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20, memoryFolder: folder("m"))
    try await store.apply([Rig.shop: policy])
    #expect(try await keep(store, [4]).exceptions.isEmpty)
    #expect(try await kept(store) == [3, 4])
    await store.close()
  }

  @Test("a collapsed report is counted on its row in memory, and a type that moves begins another row")
  func collapse() async throws {
    let store = try await open()
    for inMemory in [true, true, false, true] {
      var batch = batch([1], inMemory: inMemory)
      let repeated = ReportBatch.Repeat(
        high: 1, low: 2, arrivedTime: rig.time.unixMilliseconds, windowMilliseconds: 9000)
      batch.marks = [(0, .repeatable(repeated))]
      _ = try await append(store, [batch])
    }
    let counts = try await store.export(Rig.shop, .meta, after: 0, limit: 10).map {
      (try? JSONValue(parsing: $0.meta))?["REPEAT_COUNT"]?.int
    }
    #expect(counts == [2, nil, nil])
    #expect(try await status(store).ledger[.kept] == 3)
    await store.close()
  }

  @Test("the hourly report counts what is kept in memory")
  func hour() async throws {
    let store = try await open(reports: true)
    try await keep(store, 0..<10)
    try await keep(store, 10..<14, inMemory: false)
    while try await store.maintain() {}
    rig.time.move(seconds: 3601)
    while try await store.maintain() {}
    let rows = try await store.export(Rig.shop, .meta, after: 0, limit: 100).compactMap {
      try? JSONValue(parsing: $0.meta)
    }
    let report = try #require(rows.first { $0["MONITOR_TYPE"] == "shop-ringHealth" })
    #expect(report["types"]?.array?.first?["kept"] == 14)
    await store.close()
  }
}
