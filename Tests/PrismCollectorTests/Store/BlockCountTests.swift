import PrismBase
import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Counts that the heads of blocks give, held against the reports themselves.
@Suite("Counts from the heads of blocks") struct BlockCountTests {
  private static let kinds: [StoreRig.Kind] = [.sqlite, .postgresql]
  private static let hour: Int64 = 3_600_000
  private static let types = ["t", "order", "x[\\\"", "\\u00e9", "u\\u0000"]

  /// Fills a store with small packets, and some that end what is merged before them.
  private static func fill(
    _ store: any PacketStore, _ rig: StoreRig, packets: Int, _ types: [String] = types, using random: inout SeededRandom
  ) async throws {
    for round in 0..<packets {
      let isLarge = round % 30 == 29
      let start = Int64.random(in: 0..<200, using: &random) * hour / 2
      let spread = random.pick([1000, hour / 3, 30 * hour])
      let numbers = (0..<(isLarge ? 400 : Int.random(in: 1...20, using: &random))).map { _ in
        Int(start + Int64.random(in: 0..<spread, using: &random))
      }
      let isPayload = !isLarge && Int.random(in: 0..<4, using: &random) == 0
      let packet = try StoreRig.packet(
        numbers, device: random.pick(["a", "b"]), namespace: random.pick(["prism", "shop"]), type: random.pick(types),
        payload: isPayload ? [1] : nil,
        members: { isLarge ? #""pad":"\#(String(repeating: "y", count: 7000))""# : $0 % 3 == 0 ? #""f":true"# : nil })
      #expect(try await store.take(packet) == .stored(chainIsBroken: false))
      rig.time.advance(by: .seconds(Int.random(in: 0..<1200, using: &random)))
    }
  }

  private static func question(
    over reports: [StoredReport], using random: inout SeededRandom
  ) throws -> (ReportFilter, ReportGrouping) {
    var filter = ReportFilter(scope: .everything)
    filter.axis = random.pick([.created, .received])
    func edge() -> Int64? {
      let report = random.pick(reports)
      let time = filter.axis == .created ? report.createdTime ?? 0 : report.receivedTime
      return random.pick([nil, time, time + 1, time / hour * hour])
    }
    (filter.since, filter.until) = (edge(), edge())
    let one = random.pick(reports)
    switch Int.random(in: 0..<8, using: &random) {
    case 0: filter.type = one.type
    case 1: filter.namespace = one.namespace
    case 2: filter.kind = one.kind
    case 3: filter.device = one.device
    case 4: (filter.type, filter.namespace) = (one.type, one.namespace)
    case 5: (filter.after, filter.before) = (one.id / 2, one.id)
    case 6: filter.metas = [try MetaCondition("f")]
    default: break
    }
    let width: Int64 = random.pick([1000, hour / 60, hour / 2, hour, 24 * hour, ReportGrouping.wholeTime])
    let key: ReportGrouping.Key = random.pick([.nothing, .type, .namespace, .kind, .device, .meta(["f"])])
    return (filter, ReportGrouping(bucketMilliseconds: width, key: key))
  }

  /// Looks at every report.
  private static func counted(
    _ reports: [StoredReport], _ filter: ReportFilter, _ grouping: ReportGrouping
  ) -> [String: Int] {
    var counts: [String: Int] = [:]
    for report in reports {
      let time = filter.axis == .created ? report.createdTime ?? report.receivedTime : report.receivedTime
      let hasField = (report.createdTime ?? 0) % 3 == 0 && report.meta.count < 1000
      guard time >= filter.since ?? .min, time < filter.until ?? .max, filter.ids?.contains(report.id) ?? false,
        filter.metas.isEmpty || hasField, filter.namespace ?? report.namespace == report.namespace,
        filter.device ?? report.device == report.device, filter.kind ?? report.kind == report.kind,
        Array((filter.type ?? report.type).utf8) == Array(report.type.utf8)
      else { continue }
      let group =
        switch grouping.key {
        case .nothing: ""
        case .type: report.type
        case .namespace: report.namespace
        case .device: report.device
        case .kind: report.kind
        case .meta: hasField ? "true" : ""
        }
      counts["\(time / grouping.bucketMilliseconds * grouping.bucketMilliseconds) \(group)", default: 0] += 1
    }
    return counts
  }

  private static func all(_ store: any PacketStore) async throws -> [StoredReport] {
    var (filter, reports) = (ReportFilter(scope: .everything), [StoredReport]())
    filter.limit = 1000
    while case let page = try await store.page(filter), let last = page.last {
      reports += page
      filter.after = last.id
    }
    return reports
  }

  private static func expect(
    _ store: any PacketStore, _ reports: [StoredReport], questions: Int, using random: inout SeededRandom
  ) async throws {
    let scan = ReportScan(queries: store.queries, time: SystemTime())
    for _ in 0..<questions {
      let (filter, grouping) = try question(over: reports, using: &random)
      let found = try await scan.counts(filter, grouping).counts
      let answer = Dictionary(found.map { ("\($0.time) \($0.group)", $0.count) }, uniquingKeysWith: +)
      #expect(answer == counted(reports, filter, grouping), "\(filter), \(grouping)")
    }
  }

  @Test("each question counts what its reports are, whether they are merged or not", arguments: kinds)
  func questions(kind: StoreRig.Kind) async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("counts of blocks"))
    let rig = StoreRig()
    let store = try await rig.store(kind)
    // Two of them are one text for Swift, and two types here.
    try await Self.fill(store, rig, packets: 95, Self.types + ["e\\u0301"], using: &random)
    let reports = try await Self.all(store)
    try await Self.expect(store, reports, questions: 40 * soakFactor, using: &random)
    while try await store.maintain() {}
    try await Self.expect(store, reports, questions: 40 * soakFactor, using: &random)
    await store.close()
  }

  @Test(
    "counts by time, type, namespace and kind open no block; the blocks of earlier versions are opened, and get counts")
  func heads() async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("heads of blocks"))
    let rig = StoreRig()
    var store = try rig.sqlite()
    try await Self.fill(store, rig, packets: 65, using: &random)
    let reports = try await Self.all(store)
    await store.close()
    // As an earlier version wrote them, with one count that is not of its rows.
    let connection = try SQLiteConnection(.init(path: rig.path + "/collector.db"))
    let tables = StoreTables(SQLiteDriver(connection))
    for var head in try tables.heads(1...Int64.max, isNewestFirst: false, limit: 1000) {
      #expect(head.cells?.reduce(0) { $0 + $1.count } == head.rows)
      let body = try #require(try tables.body(of: head.id))
      head.types = head.id == 1 ? head.types?.replacing("]", with: "1]", maxReplacements: 1) : Self.names(head)
      head.sum = head.checksum(body)
      #expect(head.cells == nil)
      try tables.replace(by: head, body)
    }
    store = try rig.sqlite()
    try await Self.expect(store, reports, questions: 20, using: &random)
    while try await store.maintain() {}
    try await Self.expect(store, reports, questions: 20, using: &random)
    await store.close()
    let merged = try tables.heads(1...Int64.max, isNewestFirst: false, limit: 1000).filter { $0.cells != nil }
    #expect(merged.contains { $0.rows > 200 }, "those that were merged")
    // Without any body: only a head can tell.
    for var head in merged {
      head.sum = head.checksum([0])
      try tables.replace(by: head, [0])
    }
    store = try rig.sqlite()
    let queries = store.queries
    for key: ReportGrouping.Key in [.nothing, .type, .namespace, .kind] {
      for width in [Self.hour / 2, 6 * Self.hour, ReportGrouping.wholeTime] {
        for head in merged {
          var filter = ReportFilter(scope: .everything)
          (filter.after, filter.before) = (head.id - 1, head.last + 1)
          let grouping = ReportGrouping(bucketMilliseconds: width, key: key)
          let found = try await queries.counts(filter, grouping)
          #expect(
            Dictionary(found.map { ("\($0.time) \($0.group)", $0.count) }, uniquingKeysWith: +)
              == Self.counted(reports, filter, grouping))
        }
      }
    }
    await store.close()
  }

  /// The types without their counts.
  private static func names(_ head: BlockHead) -> String? {
    guard let text = head.types, let namespaces = (try? JSONValue(parsing: text))?.object else { return nil }
    return JSONValue.object(
      namespaces.map { namespace in
        .init(
          namespace.key,
          .object(
            (namespace.value.object ?? []).map { kind in
              .init(kind.key, .array((kind.value.object ?? []).map { .string($0.key) }))
            }))
      }
    ).text
  }

  @Test("two types that are one text for Swift are listed without counts")
  func twins() {
    var counts = BlockCounts()
    let stream = StreamID(device: "d", namespace: NamespaceName("prism")!, kind: .meta)
    for type in ["e\u{301}", "\u{e9}"] { counts.add(Array(type.utf8)[...], stream, created: 0, received: 0) }
    #expect(counts.text(createdFrom: 0, receivedFrom: 0)?.contains("[\"") == true)
  }

  @Test(
    "a head has counts, or names where its counts would be long, or nothing where there are many",
    arguments: [(types: 1, slots: 900, "counts"), (40, 90, "names"), (257, 1, "nothing"), (3, -1, "names")])
  func limits(types: Int, slots: Int, expected: String) {
    var counts = BlockCounts()
    let stream = StreamID(device: "d", namespace: NamespaceName("prism")!, kind: .meta)
    let first: Int64 = slots < 0 ? -1 : 0
    for type in 0..<types {
      for slot in 0..<max(1, Int64(slots)) {
        counts.add(Array("t\(type)".utf8)[...], stream, created: first + slot * BlockCounts.slot, received: 0)
      }
    }
    let text = counts.text(createdFrom: first, receivedFrom: 0)
    #expect((text.map { $0.contains("[\"") ? "names" : "counts" } ?? "nothing") == expected)
    if let text { #expect(BlockCounts.types([text]).count == types && text.utf8.count <= 16_384) }
  }
}
