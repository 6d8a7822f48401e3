import Foundation
import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

extension Quotas {
  convenience init(_ change: (inout CollectorConfiguration.Limits) -> Void) {
    var limits = CollectorConfiguration.Limits()
    change(&limits)
    self.init(limits)
  }

  static func fact(_ name: String, _ store: some ReadStore) async throws -> Int64 {
    try await store.readers.reports.read { try $0.statements.fact(name) ?? 0 }
  }
}

@Suite("Quotas of namespaces", .timeLimit(.minutes(3)))
struct NamespaceQuotaTests {
  private static func collector(_ rig: StoreRig, _ store: PostgreSQLTarget?) throws -> Collector {
    var configuration = CollectorConfiguration()
    configuration.limits.quotas = [
      .init(namespace: "shop-*", rowsMax: 5),
      .init(namespace: "site", rowsMax: 1000), .init(namespace: "idle", rowsMax: 9),
      .init(namespace: "*", rowsMax: 2000),
    ]
    configuration.state = rig.path
    var options = try #require(CollectorOptions(configuration))
    (options.keys, options.store) = (["main": CollectorTests.key], store)
    return try Collector(options, time: store == nil ? rig.time : SystemTime(), log: rig.log)
  }

  private static func packet(_ rows: Int, _ namespace: String, _ device: String) throws -> HTTPRequest {
    let context = PacketContext(
      deviceID: device, namespace: NamespaceName(namespace)!, packetID: CollectorTests.context(.meta).packetID,
      kind: .meta)
    return try CollectorTests.request(context, metas: Array(repeating: #"{"MONITOR_TYPE":"net"}"#, count: rows))
  }

  private static func send(_ rows: Int, _ namespace: String, _ device: String, to collector: Collector) async throws
    -> (status: Int, text: String, retry: Int)
  {
    let answer = await collector.answer(try packet(rows, namespace, device))
    let retry = answer.headers.first { $0.name == "Retry-After" }?.value
    return (answer.status, String(decoding: answer.body, as: UTF8.self), retry.flatMap { Int($0) } ?? 0)
  }

  @Test(
    "a namespace at its quota gets 507 with its name, others go on, and what is freed is filled again",
    arguments: StoreRig.Fleet.allCases)
  func full(kind: StoreRig.Fleet) async throws {
    let rig = StoreRig()
    var store: PostgreSQLTarget?
    if kind == .postgresql {
      let database = try await PostgreSQLRig()
      store = try PostgreSQLTarget(uri: database.server.uri(database.database, user: "prism", others: []))
    }
    var collector = try Self.collector(rig, store)
    await QuotaWatch(collector: collector).look()
    let first = try Self.packet(3, "shop-a", "d1")
    #expect(await collector.answer(first).status == 200)
    #expect(try await Self.send(3, "shop-a", "d2", to: collector).status == 200, "it passes its quota by one packet")
    for device in ["d1", "d3"] {
      let refused = try await Self.send(1, "shop-a", device, to: collector)
      #expect(
        refused.status == 507 && refused.text.contains("shop-a has as many reports at rest as its quota of 5 allows"),
        "\(refused)")
      #expect((300...376).contains(refused.retry))
    }
    let refused = await collector.answer(try Self.packet(1, "shop-a", "d4"))
    #expect(refused.headers.contains { $0.name == "Prism-Verdict" }, "the answer proves that it is the collector's")
    #expect(await collector.answer(first).status == 200, "a packet that is stored already gets its receipt again")
    for namespace in ["shop-b", "site", "other"] {
      #expect(try await Self.send(1, namespace, "d1", to: collector).status == 200, "\(namespace)")
    }
    let figures = collector.store.quotas.figures
    #expect(figures.first == .init(namespace: "shop-a", rows: 6, rowsMax: 5))
    let metrics = await collector.metrics
    for line in [
      #"prism_collector_quota_rows{namespace="shop-a"} 6"#, #"prism_collector_quota_max_rows{namespace="shop-a"} 5"#,
      #"prism_collector_refusals_total{cause="status507"} 3"#,
    ] { #expect(metrics.contains("\n" + line + "\n"), "\(line)") }
    let fleet = await collector.answerReader(PageRig.request("/api/v1/fleet"), isOwner: true)
    #expect(try JSONValue(parsing: fleet.body)["quotas"]?.array?.first?["namespace"] == "shop-a")
    await QuotaWatch(collector: collector).look()
    #expect(collector.store.quotas.figures.first?.rows == 6, "counted once")
    await QuotaWatch(collector: collector).look()
    let lines = rig.logged.filter { $0.contains("a namespace takes no more reports") }
    #expect(lines.count == 1 && lines[0].contains("shop-a"))
    #expect(metrics.contains("\nprism_collector_quota_rows{namespace=\"idle\"} 0\n"), "before its first report")
    await collector.close()

    collector = try Self.collector(rig, store)
    await QuotaWatch(collector: collector).look()
    #expect(try await Self.send(1, "shop-a", "d3", to: collector).status == 507, "after a restart, too")
    let erased = await collector.answerReader(
      PageRig.request(
        "/api/v1/erasures", method: .post, headers: [("content-type", "application/json")], body: #"{"device":"d1"}"#),
      isOwner: true)
    #expect(200..<300 ~= erased.status, "\(String(decoding: erased.body, as: UTF8.self))")
    while await collector.access.page.erasures.jobs.last?.state == .running { await Task.yield() }
    await QuotaWatch(collector: collector).look()
    #expect(collector.store.quotas.figures.first { $0.namespace == "shop-a" }?.rows == 3)
    #expect(try await Self.send(1, "shop-a", "d3", to: collector).status == 200)
    #expect(rig.logged.contains { $0.contains("a namespace takes reports again") })
    await collector.close()
  }

  private static func counted(_ store: some ReadStore) async throws -> Int64 {
    try await Quotas.fact("quota prism", store)
  }

  @Test("what is repeated, too early or without room is not counted, and takes the place of nothing in its group")
  func uncounted() async throws {
    let rig = StoreRig()
    let quotas = Quotas { $0.quotas = [.init(namespace: "prism", rowsMax: 6)] }
    let store = try rig.sqlite { $0.quotas = quotas }
    quotas.note(atRest: [:], taken: [:])
    let full = Overdraft(name: "prism", limit: .reports, max: 6, wait: .seconds(300))
    let first = try StoreRig.packet([1, 2, 3], reportPrefix: "a")
    let early = try StoreRig.packet([4, 5], after: try StoreRig.packet([9]).id, pending: 1)
    #expect(try await store.take(first) == .stored(chainIsBroken: false))
    let group = try [first, early, first, StoreRig.packet([6, 7], device: "e"), StoreRig.packet([8, 9], device: "f")]
    #expect(
      try await store.take((group + [try StoreRig.packet([10], device: "g")]).map { PacketSubmission(packet: $0) })
        == [
          .duplicate, .predecessorMissing, .duplicate, .stored(chainIsBroken: false), .stored(chainIsBroken: false),
          .overQuota(full),
        ])
    #expect(try await Self.counted(store) == 7)
    #expect(try await store.take(early) == .overQuota(full), "it is not held for a packet that finds no room either")
    #expect(try await store.take(first) == .duplicate)
    #expect(try await Self.counted(store) == 7)
    #expect(try await store.numbers().count == 7)
    await store.close()
  }

  @Test(
    "the same packets taken by two replicas at once are counted once, and a transaction that is rolled back not at all")
  func replicas() async throws {
    let rig = try await PostgreSQLRig()
    let stores = try (0..<2).map { _ in
      try rig.store { $0.quotas = Quotas { $0.quotas = [.init(namespace: "*", rowsMax: 1000)] } }
    }
    let packets = try (0..<40).map { try StoreRig.packet([$0, $0 + 100], device: "d\($0)", reportPrefix: "\($0)") }
    await withTaskGroup { group in
      for store in stores {
        for packet in packets { group.addTask { while (try? await store.take(packet)) == nil { await Task.yield() } } }
      }
    }
    #expect(try await Self.counted(stores[0]) == 80)
    #expect(try await rig.value("SELECT sum(rows) FROM blocks") == "80")
    _ = try await rig.sql("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no'; END$$")
    _ = try await rig.sql(
      "CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON facts DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    let late = try StoreRig.packet([999], device: "late")
    #expect((try? await stores[0].take(late)) == nil, "its commit fails behind the count")
    #expect(try await Self.counted(stores[1]) == 80)
    _ = try await rig.sql("DROP TRIGGER late ON facts")
    #expect(try await stores[1].take(late) == .stored(chainIsBroken: false))
    #expect(try await Self.counted(stores[0]) == 81)
    for store in stores { await store.close() }
  }

  @Test("the audit log has no quota, and a quota behind one that means its namespaces is a fault")
  func configuration() throws {
    let quotas = Quotas { $0.quotas = [.init(namespace: "*", rowsMax: 1)] }
    #expect(quotas.rowsMax(of: "prism-audit") == nil && quotas.rowsMax(of: "shop") == 1)
    func load(_ quotas: String) throws -> CollectorConfiguration {
      try CollectorFile(
        "state: st\nkeys: [{id: main, file: m.key}]\nquotas: \(quotas)\n",
        ["m.key": String(repeating: "6b", count: 16)]
      ).load()
    }
    let sound = try load("[{namespace: shop, maxRow: 5}, {namespace: 'shop-*', maxRow: 7}]")
    #expect(sound.limits.quotas == [.init(namespace: "shop", rowsMax: 5), .init(namespace: "shop-*", rowsMax: 7)])
    for text in [
      "[{namespace: '*', maxRow: 5}, {namespace: shop, maxRow: 7}]", "[{namespace: shop}]", "[{maxRow: 5}]",
      "[{namespace: shop, maxRow: 0}]", "[{namespace: 'a b', maxRow: 5}]", "{namespace: shop, maxRow: 5}",
    ] { #expect(throws: ConfigurationFaults.self, "\(text)") { try load(text) } }
  }
}
