import PrismBase
import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Reports at rest in blocks, which are merged behind their backs.
@Suite("Blocks of reports") struct BlockTests {
  private static let kinds: [StoreRig.Kind] = [.sqlite, .postgresql]
  private static let pad = String(repeating: "x", count: 80)

  /// A packet of one device, with or without members in common.
  private static func packet(
    _ numbers: [Int], using random: inout SeededRandom, after predecessor: PacketID?
  ) throws -> OpenedPacket {
    let app = Int.random(in: 0..<4, using: &random)
    let isShared = Int.random(in: 0..<3, using: &random) > 0
    return try StoreRig.packet(
      numbers, device: random.pick(["a", "b"]), namespace: random.pick(["prism", "shop"]),
      type: random.pick(["t", "u\\u0000", "order"]),
      payload: numbers.count < 100 && Int.random(in: 0..<5, using: &random) == 0 ? [1, 2, 3] : nil,
      ledger: "stored=1",
      common: { number in isShared && number % 7 != 0 ? #""app":\#(app),"pad":"\#(Self.pad)""# : nil },
      members: { number in
        switch number % 5 {
        case 0: #""app":{"own":\#(number)}"#
        case 1: #""text":"\#(String(repeating: "é", count: number % 90))","big":1e400"#
        case 2: #""list":[{"a":\#(number)},{"a":1.50}],"\\u0061":null"#
        default: #""more":"\#(String(repeating: "y", count: 300))""#
        }
      })
  }

  @Test("reports of merged blocks are what came, in their order, each once", arguments: kinds)
  func merged(kind: StoreRig.Kind) async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("merged blocks"))
    let rig = StoreRig()
    let store = try await rig.store(kind)
    var (sent, next) = ([String](), 0)
    // Small ones, and some of over 2 MiB, which make the blocks before them whole.
    for round in 0..<120 {
      let count = round % 40 == 39 ? 9000 : Int.random(in: 1...30, using: &random)
      let packet = try Self.packet(Array(next..<next + count), using: &random, after: nil)
      next += count
      sent += packet.rows.map { String(decoding: packet.reports.meta($0), as: UTF8.self) }
      #expect(try await store.take(packet) == .stored(chainIsBroken: false))
    }
    let before = try await store.reports()
    #expect(before.map { String(decoding: $0.meta, as: UTF8.self) } == sent)
    while try await store.maintain() {}
    let after = try await store.reports()
    #expect(after == before)
    var filter = ReportFilter(scope: .everything)
    (filter.isNewestFirst, filter.limit, filter.type, filter.hasPayloads) = (true, 1000, "u\0", true)
    let newest = try await store.page(filter)
    #expect(newest == Array(before.filter { $0.type == "u\0" }.reversed().prefix(newest.count)) && !newest.isEmpty)
    for report in before.shuffled(using: &random).prefix(20) {
      #expect(try await store.report(report.id, .everything) == report)
    }
    let windows = try await store.queries.windows(ReportFilter(scope: .everything), nil)
    #expect(windows.count > 0)
    if kind == .sqlite {
      let blocks = try SQLiteConnection(.init(path: rig.path + "/collector.db", isReadOnly: true))
        .firstInt("SELECT count(*) FROM blocks")
      #expect(try #require(blocks) < 60, "some are merged")
    }
    await store.close()
  }

  @Test(
    "an id that no report can have is no report, and a page from there is empty", arguments: kinds,
    [Int64.min, -1, 0, 2, .max - 1, .max])
  func foreignIDs(kind: StoreRig.Kind, id: Int64) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    _ = try await store.take(StoreRig.packet([1]))
    #expect(try await store.report(id, .everything) == nil)
    var filter = ReportFilter(scope: .everything)
    filter.after = max(.max - 1, id)
    #expect(try await store.page(filter).isEmpty)
    (filter.after, filter.before) = (0, max(0, min(id, 1)))
    #expect(try await store.page(filter).isEmpty)
    await store.close()
  }

  @Test(
    "a block that is not what was written is left out, counted and named, and the others stay",
    arguments: ["body = substr(body, 1, length(body) - 1) || x'00'", "received_last = received_last + 1"])
  func damaged(change: String) async throws {
    let rig = StoreRig()
    var store = try rig.sqlite()
    for number in 0..<5 {
      _ = try await store.take(StoreRig.packet(Array(number * 100..<number * 100 + 100), device: "d\(number)"))
    }
    await store.close()
    try SQLiteConnection(.init(path: rig.path + "/collector.db")).execute(
      "UPDATE blocks SET \(change) WHERE id = 201")
    store = try rig.sqlite()
    #expect(try await store.numbers().count == 400)
    #expect(try await store.report(250, .everything) == nil)
    #expect(try await store.report(350, .everything) != nil)
    let counts = try await store.queries.counts(
      ReportFilter(scope: .everything), ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime))
    #expect(counts.map(\.count) == [400], "it is known now")
    #expect(store.warnings.contains { $0.hasPrefix("1 blocks of reports are damaged") && $0.contains("201 to 300") })
    while try await store.maintain() {}
    #expect(try await store.numbers().count == 400)
    await store.close()
  }

  @Test(
    "time is when a report was made, by a right clock; or when it came, where that is asked for", arguments: kinds)
  func axis(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    _ = try await store.take(StoreRig.packet(Array(1000..<1100)))
    let count = { (axis: ReportFilter.Axis, since: Int64, until: Int64) in
      var filter = ReportFilter(scope: .everything)
      (filter.axis, filter.since, filter.until, filter.limit) = (axis, since, until, 1000)
      return try await store.page(filter).count
    }
    #expect(try await count(.created, 1010, 1020) == 10)
    #expect(try await count(.received, 1010, 1020) == 0)
    #expect(try await count(.created, 2000, .max) == 0)
    #expect(try await count(.received, rig.now(kind) - 60_000, rig.now(kind) + 60_000) == 100)
    let queries = store.queries
    let times = try await queries.counts(ReportFilter(scope: .everything), ReportGrouping(bucketMilliseconds: 50))
    #expect(times.sorted { $0.time < $1.time }.map(\.time) == [1000, 1050])
    await store.close()
  }
}
