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

@Suite("The rows and bytes of a device's day", .timeLimit(.minutes(3)))
struct DeviceQuotaTests {
  private static func collector(
    _ rig: StoreRig, _ store: PostgreSQLTarget? = nil, _ change: (inout CollectorConfiguration.Limits) -> Void
  ) throws -> Collector {
    var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
    change(&options.limits)
    options.store = store
    return try Collector(options, time: store == nil ? rig.time : SystemTime(), log: rig.log)
  }

  private static func rows(_ count: Int, _ device: String) throws -> HTTPRequest {
    try CollectorTests.request(
      CollectorTests.context(.meta, device: device),
      metas: Array(repeating: #"{"MONITOR_TYPE":"net"}"#, count: count))
  }

  private static func payload(_ bytes: Int, _ device: String) throws -> HTTPRequest {
    try CollectorTests.request(
      CollectorTests.context(.payload, device: device), metas: [#"{"MONITOR_TYPE":"net"}"#],
      payloads: [[UInt8](repeating: 0, count: bytes)])
  }

  private static func retry(_ answer: HTTPResponse) -> Int {
    answer.headers.first { $0.name == "Retry-After" }.flatMap { Int($0.value) } ?? 0
  }

  @Test("past its rows a device gets 429 with the time of its next day, over a restart; others go on")
  func rows() async throws {
    let rig = StoreRig()
    var collector = try Self.collector(rig) { $0.deviceRowsPerDay = 5 }
    let first = try Self.rows(4, "d")
    for _ in 0..<3 { #expect(await collector.answer(first).status == 200, "a packet that comes again takes no room") }
    #expect(await collector.answer(try Self.rows(3, "d")).status == 200, "one that finds room is taken whole")
    let refused = await collector.answer(try Self.rows(1, "d"))
    let text = String(decoding: refused.body, as: UTF8.self)
    #expect(refused.status == 429 && text.contains("the 5 rows (deviceRowPerDay) that it may in a day"), "\(text)")
    #expect((1...4500).contains(Self.retry(refused)) && refused.headers.contains { $0.name == "Prism-Verdict" })
    #expect(await collector.answer(try Self.rows(1, "e")).status == 200)
    var told: Int?
    if case .refuse(let answer) = HeadCheck(collector: collector).admit(try Self.rows(1, "d")) { told = answer.status }
    #expect(told == 429, "by its head, without its body")
    #expect(await collector.metrics.contains("\nprism_collector_limited_devices 1\n"))
    for _ in 0..<2 { await QuotaWatch(collector: collector).look() }
    #expect(rig.logged.count { $0.contains("devices sent what they may in a day") } == 1)
    await collector.close()

    collector = try Self.collector(rig) { $0.deviceRowsPerDay = 5 }
    #expect(await collector.answer(try Self.rows(1, "d")).status == 429, "a restart gives nothing")
    await collector.close()
    collector = try Self.collector(rig) { $0.deviceRowsPerDay = 9 }
    #expect(await collector.answer(try Self.rows(2, "d")).status == 200)
    #expect(await collector.answer(try Self.rows(2, "d")).status == 429)
    await QuotaWatch(collector: collector).look()
    rig.time.advance(by: .seconds(86_400))
    await QuotaWatch(collector: collector).look()
    #expect(await collector.metrics.contains("\nprism_collector_limited_devices 0\n"))
    #expect(rig.logged.contains { $0.contains("no device waits for its next day") })
    #expect(await collector.answer(try Self.rows(2, "d")).status == 200, "the next day")
    await collector.close()
  }

  @Test(
    "no wall clock ends a day, or holds a device for good", arguments: [-1_700_000_000_000, 40 * 86_400_000] as [Int64])
  func clocks(step: Int64) async throws {
    let rig = StoreRig()
    var collector = try Self.collector(rig) { $0.deviceRowsPerDay = 5 }
    #expect(await collector.answer(try Self.rows(5, "d")).status == 200)
    rig.time.stepWallClock(milliseconds: step)
    #expect(await collector.answer(try Self.rows(1, "d")).status == 429)
    await collector.close()
    rig.time.stepWallClock(milliseconds: -step)
    collector = try Self.collector(rig) { $0.deviceRowsPerDay = 5 }
    #expect(await collector.answer(try Self.rows(1, "d")).status == 429)
    rig.time.advance(by: .seconds(86_400))
    #expect(await collector.answer(try Self.rows(1, "d")).status == 200)
    await collector.close()
  }

  @Test("what a packet unpacks to counts before it is stored, on many connections at once and at each replica")
  func bytes() async throws {
    let database = try await PostgreSQLRig()
    let target = try PostgreSQLTarget(uri: database.server.uri(database.database, user: "prism", others: []))
    let rigs = (0..<2).map { _ in StoreRig() }
    let replicas = try rigs.map { try Self.collector($0, target) { $0.deviceBytesPerDay = 1_048_576 } }
    let packets = try (0..<24).map { _ in try Self.payload(2_097_152, "d") }
    #expect(packets[0].body.count < 100_000)
    let stored = await withTaskGroup(of: Bool.self) { group in
      for (place, packet) in packets.enumerated() {
        group.addTask { await replicas[place % 2].answer(packet).status == 200 }
      }
      return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
    }
    // One stream: the replicas wait for each other.
    #expect(stored == 1)
    let answer = await replicas[1].answer(try Self.payload(1, "d"))
    #expect(String(decoding: answer.body, as: UTF8.self).contains("the 1 MiB unpacked (deviceMBytePerDay)"))
    #expect(await replicas[0].answer(try Self.payload(1, "e")).status == 200)
    for replica in replicas { await replica.close() }
  }

  @Test(
    "counts of days that are over are deleted, however many devices there were",
    arguments: [.sqlite, .postgresql] as [StoreRig.Kind])
  func endedDays(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    if kind == .sqlite {
      try await Self.endDays(try rig.sqlite(), rig)
    } else {
      try await Self.endDays(try await PostgreSQLRig().store(), rig)
    }
  }

  private static func endDays(_ store: some ReadStore, _ rig: StoreRig) async throws {
    @Sendable func day(_ number: Int64) -> Int64 { number << Quotas.countBits | 7 }
    _ = try await store.changing("", "") { tables in
      for device in 0..<2100 { try tables.statements.set("day rows d\(device)", day(Int64(device) % 2)) }
      for (device, number) in [("now", 2), ("later", 3)] as [(String, Int64)] {
        for fact in Quotas.facts(of: device) { try tables.statements.set(fact, day(number)) }
      }
      try tables.statements.set(ServiceTime.fact, 2 * 86_400)
      return Result<Int, Never>.success(0)
    }.get()
    rig.time.advance(by: .seconds(2 * 86_400))
    while try await store.maintain() {}
    let left = try await store.readers.reports.read {
      try $0.statements.texts("SELECT name FROM facts WHERE name LIKE 'day %' ORDER BY name").map { $0[0] }
    }
    #expect(left == ["day bytes later", "day bytes now", "day rows later", "day rows now"])
    await store.close()
  }

  @Test("a packet that is carried in a file, or is not taken, uses nothing; an erased device leaves no count")
  func uncounted() async throws {
    let rig = StoreRig()
    let store = try rig.sqlite { $0.quotas = Quotas { $0.deviceRowsPerDay = 5 } }
    let first = try StoreRig.packet([1, 2, 3])
    let early = try StoreRig.packet([4], after: try StoreRig.packet([9]).id, pending: 1)
    #expect(try await store.take(first) == .stored(chainIsBroken: false))
    #expect(try await store.take(early) == .predecessorMissing)
    #expect(try await Quotas.fact("day rows d", store) & 0xFFFF == 3)
    #expect(try await Quotas.fact("day bytes d", store) & 0xFFFF == Int64(first.unpackedBytes))
    _ = try await store.changing("", "") { tables in Result<Int, Never>.success(try tables.erase(device: "d")) }.get()
    for fact in Quotas.facts(of: "d") { #expect(try await Quotas.fact(fact, store) == 0) }
    await store.close()

    let collector = try Self.collector(rig) { $0.deviceRowsPerDay = 5 }
    for _ in 0..<2 {
      #expect(try await collector.receive(Self.rows(9, "d"), .meta, isCarried: true).status == 200)
    }
    #expect(await collector.answer(try Self.rows(1, "d")).status == 200)
    await collector.close()
  }
}
