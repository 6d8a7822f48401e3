import PrismBase
import PrismHTTP
import PrismOutputs
import PrismProtocol
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The answers of any store to the page.
@Suite("Questions of the page to a store")
struct ReportQueriesTests {
  private static let kinds: [StoreRig.Kind] = [.sqlite, .postgresql]

  private func filled(_ kind: StoreRig.Kind, _ rig: StoreRig) async throws -> (any PacketStore, ReportScan) {
    let store = try await rig.store(kind)
    for packet in [
      try StoreRig.packet([1, 2, 3], device: "a", type: "x", ledger: "stored=3"),
      try StoreRig.packet([10, 20], device: "b", namespace: "shop", type: "y", ledger: "stored=9;delivered=2"),
      try StoreRig.packet([100], device: "b", namespace: "shop", type: "z", payload: [1]),
    ] { _ = try await store.take(packet) }
    let queries = store.queries
    return (store, ReportScan(queries: queries, time: SystemTime()))
  }

  @Test("reports behind a hole of ids, as a replaced database leaves, are read with some questions")
  func hole() async throws {
    let rig = StoreRig()
    var store = try rig.sqlite()
    _ = try await store.take(StoreRig.packet([1]))
    await store.close()
    try SQLiteConnection(.init(path: rig.path + "/collector.db")).execute(
      "REPLACE INTO facts VALUES ('newest_report', \(1 << 40))")
    store = try rig.sqlite()
    _ = try await store.take(StoreRig.packet([2]))
    let newest = try await store.queries.newestID()
    #expect(newest > 1 << 40)
    var (cursor, found, pages): (Int64, Int, Int) = (0, 0, 0)
    while cursor < newest {
      let (reports, end) = try await store.reports(.everything, of: "t", after: cursor, upTo: newest)
      (cursor, found, pages) = (end, found + reports.count, pages + 1)
      try #require(pages < 10)
    }
    #expect(found == 2)
    await store.close()
  }

  @Test(
    "reports are counted by type, namespace, device, kind, and by a field of the meta",
    arguments: kinds,
    [
      (.nothing, ["": 6]), (.type, ["x": 3, "y": 2, "z": 1]), (.namespace, ["prism": 3, "shop": 3]),
      (.device, ["a": 3, "b": 3]), (.kind, ["meta": 5, "payload": 1]),
      (.meta(["n"]), ["1": 1, "2": 1, "3": 1, "10": 1, "20": 1, "100": 1]), (.meta(["none"]), ["": 6]),
      (.meta(["n", "deeper"]), ["": 6]),
    ] as [(ReportGrouping.Key, [String: Int])])
  func counts(kind: StoreRig.Kind, expected: (key: ReportGrouping.Key, counts: [String: Int])) async throws {
    let rig = StoreRig()
    let (store, scan) = try await filled(kind, rig)
    let grouping = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime, key: expected.key)
    let (counts, reach) = try await scan.counts(ReportFilter(scope: .everything), grouping)
    #expect(Dictionary(uniqueKeysWithValues: counts.map { ($0.group, $0.count) }) == expected.counts)
    #expect(reach.since == nil)
    await store.close()
  }

  @Test("past the limit of numbers the newest ones are there, whole from the id on that is said", arguments: kinds)
  func numbersLimit(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    for round in 0..<800 { _ = try await store.take(StoreRig.packet(Array(round * 5..<round * 5 + 5))) }
    let grouping = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime)
    let filter = ReportFilter(scope: .everything)
    let all = try await store.queries.numbers(filter, path: ["n"], grouping, limit: 1_000_000)
    #expect(all.from == nil && all.numbers.map(\.values.total) == [4000])
    let some = try await store.queries.numbers(filter, path: ["n"], grouping, limit: 500)
    let from = try #require(some.from)
    var rest = filter
    rest.after = from - 1
    let whole = try await store.numbers(rest).compactMap(\.self).map { Double($0) }
    #expect(whole.count < 4000 && some.numbers.map(\.values) == [NumberCounts(whole)])
    await store.close()
  }

  @Test("texts are grouped byte by byte, though they may look the same", arguments: kinds)
  func lookalikes(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let words = ["caf\u{e9}", "cafe\u{301}"]
    for (place, word) in words.enumerated() {
      _ = try await store.take(
        StoreRig.packet(Array(0...place), members: { _ in #""w":"\#(word)""# }))
    }
    let scan = ReportScan(queries: store.queries, time: SystemTime())
    let grouping = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime, key: .meta(["w"]))
    let counts = try await scan.counts(ReportFilter(scope: .everything), grouping).counts
    #expect(counts.map { [UInt8]($0.group.utf8) }.sorted { $0.count < $1.count } == words.map { [UInt8]($0.utf8) })
    #expect(counts.map(\.count).sorted() == [1, 2])
    let numbers = try await scan.numbers(ReportFilter(scope: .everything), path: ["n"], grouping).numbers
    #expect(numbers.map(\.values.total).sorted() == [1, 2])
    await store.close()
  }

  @Test("a report of the last time that there is is found, counted and read, as one without bounds", arguments: kinds)
  func lastTime(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    _ = try await store.take(StoreRig.packet([1, .max]))
    let scan = ReportScan(queries: store.queries, time: SystemTime())
    let whole = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime)
    #expect(try await store.numbers() == [1, .max])
    #expect(try await scan.counts(ReportFilter(scope: .everything), whole).counts.reduce(0) { $0 + $1.count } == 2)
    var bounded = ReportFilter(scope: .everything)
    bounded.until = .max
    #expect(try await store.numbers(bounded) == [1])
    #expect(try await scan.counts(bounded, whole).counts.reduce(0) { $0 + $1.count } == 1)
    await store.close()
  }

  @Test("a filter holds for counts and numbers, too", arguments: kinds)
  func filters(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let (store, scan) = try await filled(kind, rig)
    let whole = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime)
    let count = { (change: (inout ReportFilter) throws -> Void) in
      var filter = ReportFilter(scope: .everything)
      try change(&filter)
      return try await scan.counts(filter, whole).counts.reduce(0) { $0 + $1.count }
    }
    #expect(try await count { $0.type = "y" } == 2)
    #expect(try await count { $0.device = "b" } == 3)
    #expect(try await count { ($0.device, $0.kind) = ("b", "payload") } == 1)
    #expect(try await count { $0.namespace = "prism" } == 3)
    #expect(try await count { $0.metas = [try MetaCondition("n >= 10")] } == 3)
    #expect(try await count { $0.type = "none" } == 0)
    #expect(try await count { $0.until = 1 } == 0)
    #expect(try await count { $0.since = 4_000_000_000_000 } == 0)
    await store.close()
  }

  @Test("the numbers of a field are read by group; a report without a number is left out", arguments: kinds)
  func numbers(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let (store, scan) = try await filled(kind, rig)
    let grouping = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime, key: .type)
    let (numbers, _) = try await scan.numbers(ReportFilter(scope: .everything), path: ["n"], grouping)
    let sums = numbers.reduce(into: [String: Double]()) { $0[$1.group, default: 0] += $1.values.sum }
    #expect(sums == ["x": 6, "y": 30, "z": 100])
    #expect(try await scan.numbers(ReportFilter(scope: .everything), path: ["REPORT_ID"], grouping).numbers.isEmpty)
    await store.close()
  }

  @Test("a field that reports have in common is counted and read as one of their own", arguments: kinds)
  func commonFields(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let pad = #""pad":"\#(String(repeating: "x", count: 80))""#
    let common = { (number: Int) in
      number == 9 ? nil : #""app":{"name":"a\#(number / 4)"},"size":\#(number / 4 * 10),\#(pad)"#
    }
    _ = try await store.take(
      StoreRig.packet(
        Array(0..<10), common: common, members: { $0 == 1 ? #""app":{"name":"own"},"size":"text""# : nil }))
    let scan = ReportScan(queries: store.queries, time: SystemTime())
    let byName = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime, key: .meta(["app", "name"]))
    let counts = try await scan.counts(ReportFilter(scope: .everything), byName).counts
    #expect(
      Dictionary(uniqueKeysWithValues: counts.map { ($0.group, $0.count) }) == [
        "a0": 3, "own": 1, "a1": 4, "a2": 1, "": 1,
      ])
    var filter = ReportFilter(scope: .everything)
    filter.metas = [try MetaCondition("app.name != a0")]
    let numbers = try await scan.numbers(filter, path: ["size"], byName).numbers
    let sums = numbers.reduce(into: [String: Double]()) { $0[$1.group, default: 0] += $1.values.sum }
    #expect(sums == ["a1": 40, "a2": 20])
    await store.close()
  }

  @Test("windows hold every report, from the newest to the oldest, and no report twice", arguments: kinds)
  func windows(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let (store, scan) = try await filled(kind, rig)
    let ids = try await store.page(ReportFilter(scope: .everything)).map(\.id)
    let windows = try await scan.queries.windows(ReportFilter(scope: .everything), nil)
    for id in ids { #expect(windows.count { $0.contains(id) } == 1) }
    for (newer, older) in zip(windows, windows.dropFirst()) { #expect(older.upperBound < newer.lowerBound) }
    await store.close()
  }

  @Test("streams have their ledger and their last packet's time; types have their namespace", arguments: kinds)
  func names(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let (store, scan) = try await filled(kind, rig)
    let streams = try await scan.queries.streams(.everything, of: nil, limit: 10)
    #expect(
      Set(streams.map { "\($0.device) \($0.namespace) \($0.kind)" }) == [
        "a prism meta", "b shop meta", "b shop payload",
      ])
    let ofB = try await scan.queries.streams(.everything, of: "b", limit: 10)
    #expect(ofB.count == 2 && ofB.allSatisfy { $0.packets == 1 && $0.receivedTime > 1_000_000_000_000 })
    #expect(ofB.first { $0.kind == "meta" }?.ledger == "stored=9;delivered=2;carried=2")
    #expect(
      try await scan.queries.types(.everything, limit: 10) == [
        TypeName(namespace: "prism", type: "x"), TypeName(namespace: "shop", type: "y"),
        TypeName(namespace: "shop", type: "z"),
      ])
    await store.close()
  }

  @Test("a scan whose time is up answers for the newest reports and says from when on", arguments: kinds)
  func budget(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let (store, scan) = try await filled(kind, rig)
    let slow = ReportScan(queries: CutWindows.single(scan.queries), time: SystemTime())
    let whole = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime)
    let (counts, reach) = try await slow.counts(ReportFilter(scope: .everything), whole, within: .zero)
    #expect(counts.reduce(0) { $0 + $1.count } == 1)
    #expect(try #require(reach.since) > 1_000_000_000_000)
    await store.close()
  }

  @Test(
    "a search whose time is up says where it came to, and goes on there, in both orders", arguments: kinds,
    [false, true])
  func search(kind: StoreRig.Kind, isNewestFirst: Bool) async throws {
    let rig = StoreRig()
    let (store, scan) = try await filled(kind, rig)
    let slow = ReportScan(queries: CutWindows.single(scan.queries), time: SystemTime())
    var wanted = ReportFilter(scope: .everything)
    wanted.isNewestFirst = isNewestFirst
    wanted.metas = [try MetaCondition(isNewestFirst ? "n=1" : "n=100")]
    let first = try await slow.page(wanted, within: .zero, store.page)
    #expect(first.reports.isEmpty && first.isPartial)
    let next = try #require(first.next)
    #expect(Self.body(first) == #"{"reports":[],"next":\#(next),"partial":true}"# + "\n")
    if isNewestFirst { wanted.before = next } else { wanted.after = next }
    let second = try await scan.page(wanted, store.page)
    #expect(second.reports.compactMap { StoreRig.number($0) } == [isNewestFirst ? 1 : 100])
    #expect(!second.isPartial && second.next == nil && !Self.body(second).contains("partial"))
    await store.close()
  }

  private static func body(_ page: ReportPage) -> String {
    String(decoding: page.answer.body, as: UTF8.self)
  }
}
