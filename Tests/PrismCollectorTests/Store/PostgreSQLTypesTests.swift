import PrismBase
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("The names of types in PostgreSQL")
struct PostgreSQLTypesTests {
  private static func types(_ store: PostgreSQLPacketStore) async throws -> [String] {
    try await #require(store.queries).types(limit: 100).map { "\($0.namespace) \($0.type)" }
  }

  @Test("types are listed without a look at the reports, also of reports long past")
  func lists() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    _ = try await store.take(StoreRig.packet([1, 2], type: "x"))
    _ = try await store.take(StoreRig.packet([3], device: "e", namespace: "shop", type: "y"))
    _ = try await rig.sql("DELETE FROM reports")
    #expect(try await Self.types(store) == ["prism x", "shop y"])
    await store.close()
  }

  @Test("a type of a group that failed is written with the next one")
  func failedGroup() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    let good = try StoreRig.packet([1], type: "x")
    let bad = try StoreRig.packet([2], device: "e", type: "x", reportPrefix: #"\u0000"#)
    await #expect(throws: StoreFailure.self) {
      try await store.take([PacketSubmission(packet: good), PacketSubmission(packet: bad)])
    }
    #expect(try await Self.types(store) == [])
    #expect(try await store.take([PacketSubmission(packet: good)]) == [.stored(chainIsBroken: false)])
    #expect(try await Self.types(store) == ["prism x"])
    await store.close()
  }

  @Test("a type longer than an index holds is stored, and not listed")
  func longType() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    let long = String((0..<6000).map { "abcdefghijklmnopqrstuvwxyz0123456789".randomElement($0) })
    #expect(
      try await store.take([PacketSubmission(packet: StoreRig.packet([1], type: long))]) == [
        .stored(chainIsBroken: false)
      ])
    #expect(try await Self.types(store) == [])
    #expect(try await rig.value("SELECT max(length(type)) FROM reports") == "6000")
    await store.close()
  }

  @Test("a type is forgotten with its last reports, and one that still comes is noted each day")
  func forgets() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store { $0.retentionDays = 7 }
    _ = try await store.take(StoreRig.packet([1], type: "old"))
    _ = try await store.take(StoreRig.packet([2], device: "e", type: "kept"))
    _ = try await rig.sql("UPDATE types SET seen = seen - CASE type WHEN 'old' THEN 9 ELSE 8 END")
    while try await store.maintain() {}
    #expect(try await Self.types(store) == ["prism kept"])
    let again = try rig.store()  // as after midnight: nothing is noted for this day
    _ = try await again.take(StoreRig.packet([3], device: "f", type: "kept"))
    #expect(try await rig.value("SELECT seen = (now() AT TIME ZONE 'UTC')::date FROM types") == "t")
    for one in [store, again] { await one.close() }
  }
}

extension String {
  /// A letter by its place: texts of one letter would be compressed in an index.
  fileprivate func randomElement(_ place: Int) -> Character {
    Array(self)[(place &* 7919 ^ place >> 3) % count]
  }
}
