import Foundation
import PrismBase
import PrismProtocol
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Common information is stored once a day on SQLite.
@Suite("Contexts of the collector's store on SQLite")
struct SQLiteContextTests {
  private static let common = #""app":"8.12.0","device":"\#(String(repeating: "d", count: 400))""#

  private static func packet(
    _ numbers: Range<Int>, after last: PacketID? = nil, common: String = Self.common
  ) throws -> OpenedPacket {
    try StoreRig.packet(Array(numbers), after: last, common: { _ in common })
  }

  private static func maintain(_ store: SQLitePacketStore) async throws {
    while try await store.maintain() {}
  }

  private static func value(_ rig: StoreRig, _ sql: String) throws -> Int64? {
    try SQLiteConnection(.init(path: rig.path + "/collector.db", isReadOnly: true)).firstInt(sql)
  }

  private static func expectWhole(_ store: any PacketStore, _ numbers: [Int]) async throws {
    var filter = ReportFilter()
    filter.limit = 1000
    let found = try await store.page(filter)
    #expect(found.map { StoreRig.number($0) } == numbers && !found.contains { $0.isDamaged })
    #expect(found.allSatisfy { String(decoding: $0.meta, as: UTF8.self).hasSuffix("," + Self.common + "}") })
  }

  @Test("it is stored once a day, over restarts, too, and the view shows whole metas")
  func once() async throws {
    let rig = StoreRig()
    var store = try rig.sqlite()
    let first = try Self.packet(0..<50)
    let second = try Self.packet(50..<60, after: first.id)
    for packet in [first, second] { _ = try await store.take(packet) }
    await store.close()
    store = try rig.sqlite()
    // It is known: a row alone refers to it, too.
    _ = try await store.take(Self.packet(60..<61, after: second.id))
    #expect(try Self.value(rig, "SELECT count(*) FROM contexts") == 1)
    #expect(try Self.value(rig, "SELECT max(length(meta)) FROM reports") ?? .max < 100)
    #expect(
      try Self.value(rig, "SELECT count(*) FROM report WHERE meta ->> 'app' = '8.12.0' AND meta ->> 'n' >= 0") == 61)
    rig.time.advance(by: .seconds(86_400))
    _ = try await store.take(Self.packet(61..<63))
    #expect(try Self.value(rig, "SELECT count(*) FROM contexts") == 2)
    #expect(
      try Self.value(rig, "SELECT count(*) FROM reports r JOIN contexts c ON c.id = r.context WHERE c.id > r.id") == 0)
    try await Self.expectWhole(store, Array(0..<63))
    await store.close()
  }

  @Test("contexts are deleted with the reports of their day, and not before")
  func retention() async throws {
    let rig = StoreRig()
    let store = try rig.sqlite { $0.retentionDays = 7 }
    for day in 0..<20 {
      _ = try await store.take(Self.packet(day * 10..<day * 10 + 10))
      rig.time.advance(by: .seconds(86_400))
      try await Self.maintain(store)
    }
    try await Self.expectWhole(store, Array(130..<200))
    #expect(try Self.value(rig, "SELECT count(*) FROM contexts") == 7)
    for _ in 0..<8 {
      rig.time.advance(by: .seconds(86_400))
      try await Self.maintain(store)
    }
    #expect(try Self.value(rig, "SELECT count(*) FROM contexts") == 0)
    _ = try await store.take(Self.packet(300..<302))
    try await Self.expectWhole(store, [300, 301])
    await store.close()
  }

  /// Changes the one page of a table or an index, behind SQLite's back.
  private static func overwrite(_ rig: StoreRig, _ name: String, _ change: (inout Data) -> Void) throws {
    let page = try #require(try value(rig, "SELECT rootpage FROM sqlite_schema WHERE name = '\(name)'"))
    let file = try FileHandle(forUpdating: URL(filePath: rig.path + "/collector.db"))
    let offset = UInt64(page - 1) * UInt64(PacketSchema.pageBytes)
    try file.seek(toOffset: offset)
    var bytes = try #require(try file.read(upToCount: PacketSchema.pageBytes))
    change(&bytes)
    try file.seek(toOffset: offset)
    try file.write(contentsOf: bytes)
    try file.close()
  }

  private static func ruin(_ page: inout Data) { page.replaceSubrange(7168..., with: Data(count: 1024)) }

  @Test("the view shows by how much a report's time was corrected, also without a time or a meta that can be read")
  func correction() async throws {
    let rig = StoreRig()
    let store = try rig.sqlite()
    for packet in try StoreRig.correctedPackets() { _ = try await store.take(packet) }
    #expect(try Self.value(rig, "SELECT sum(correction * (meta ->> 'n')) FROM report") == StoreRig.correctedSum)
    await store.close()
    try SQLiteConnection(.init(path: rig.path + "/collector.db")).execute(
      "UPDATE reports SET created_time = NULL WHERE id = 2; UPDATE reports SET meta = 'x' WHERE id = 3")
    #expect(try Self.value(rig, "SELECT count(*) FROM report WHERE correction = 0") == 3)
  }

  private static func change(_ page: inout Data) {
    guard let place = page.range(of: Data("8.12.0".utf8)) else { return }
    page.replaceSubrange(place, with: Data("8.13.0".utf8))
  }

  @Test("reports of a database that was set aside keep their contexts, one of which can be read only a second time")
  func setAside() async throws {
    let rig = StoreRig()
    var store = try rig.sqlite()
    let packets = [try Self.packet(0..<200), try Self.packet(200..<300)]
    for packet in packets { _ = try await store.take(packet) }
    await store.close()
    try Self.overwrite(rig, "contexts", Self.change)
    try Self.overwrite(rig, "packets_name", Self.ruin)
    store = try rig.sqlite()
    try await Self.maintain(store)
    for packet in packets { #expect(try await store.take(packet) == .duplicate) }
    _ = try await store.take(Self.packet(300..<302))
    try await Self.expectWhole(store, Array(0..<302))
    #expect(rig.names.contains { $0.contains("damaged") })
    #expect(try Self.value(rig, "SELECT max(length(meta)) FROM reports") ?? .max < 100, "they are not merged")
    await store.close()
  }

  @Test("a context that changed on the disk is read from its second copy; without one its reports are damaged")
  func damaged() async throws {
    let rig = StoreRig()
    var store = try rig.sqlite()
    _ = try await store.take(Self.packet(0..<20))
    await store.close()
    try Self.overwrite(rig, "contexts", Self.change)
    store = try rig.sqlite { $0.checkedAtOnceBytesMax = 0 }
    try await Self.expectWhole(store, Array(0..<20))
    await store.close()
    try Self.overwrite(rig, "contexts_copy", Self.change)
    let reader = ReportReader(path: rig.path + "/collector.db", vfs: nil)
    let found = try await reader.page(ReportFilter())
    #expect(found.count == 20 && found.allSatisfy { $0.isDamaged && $0.meta.isEmpty })
  }
}
