import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The promises of any store of records.
@Suite("Stores of records") struct RecordTests {
  private static let kinds = RecordRig.kinds
  private static let part = RecordTableName("part")!

  private static func operation(_ kind: RecordOperation.Kind, _ id: String, _ n: Int = 0) -> RecordOperation {
    RecordRig.operation(kind, id, n)
  }

  private static func packet(
    _ operations: [RecordOperation], device: String = "d", after predecessor: PacketID? = nil
  ) throws -> OpenedPacket {
    try RecordRig.packet(operations, device: device, after: predecessor)
  }

  private static func rows(_ store: any PacketStore, device: String? = nil) async throws -> [String] {
    var filter = RecordFilter(scope: .everything, namespace: NamespaceName("shop")!, table: part)
    filter.device = device
    return try await store.records(filter).map { "\($0.device)/\($0.id) \(String(decoding: $0.fields, as: UTF8.self))" }
  }

  private static func receipt(_ outcome: PacketOutcome?) -> RecordReceipt? {
    if case .applied(let applied)? = outcome { applied.receipt } else { nil }
  }

  @Test("operations are carried out in their order, and ids are given to records of each device", arguments: kinds)
  func carriesOut(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let first = try Self.packet([Self.operation(.insert, "a", 1), Self.operation(.insert, "b", 2)])
    let ids = try #require(Self.receipt(try await store.take(first))?.ids[Self.part])
    #expect(Set(ids.keys.map(\.text)) == ["a", "b"] && Set(ids.values).count == 2)
    _ = try await store.take(try Self.packet([Self.operation(.insert, "a", 9)], device: "e"))
    let second = try Self.packet(
      [Self.operation(.update, "a", 3), Self.operation(.delete, "b"), Self.operation(.delete, "none")], after: first.id)
    #expect(Self.receipt(try await store.take(second))?.ids[Self.part]?[RecordID("a")!] == ids[RecordID("a")!])
    #expect(try await Self.rows(store) == [#"d/a {"n":3}"#, #"e/a {"n":9}"#])
    #expect(try await Self.rows(store, device: "e") == [#"e/a {"n":9}"#])
    #expect(try await store.numbers().isEmpty, "an operation is no report")
    await store.close()
  }

  @Test("a device's records are read across its tables, page by page", arguments: kinds)
  func ofDevice(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let other = RecordTableName("other")!
    for device in ["d", "e"] {
      var second = Self.operation(.insert, "b", 2)
      second.table = other
      _ = try await store.take(try Self.packet([Self.operation(.insert, "a", 1), second], device: device))
    }
    var filter = RecordFilter(scope: .everything, namespace: nil, table: nil)
    (filter.device, filter.limit) = ("e", 1)
    let first = try await store.records(filter)
    #expect(first.map { "\($0.namespace.text)/\($0.table)/\($0.id)" } == ["shop/part/a"])
    filter.after = try #require(first.last?.number)
    #expect(try await store.records(filter).map { "\($0.device)/\($0.table)/\($0.id)" } == ["e/other/b"])
    await store.close()
  }

  @Test("a packet that comes again gets the same answer and changes nothing", arguments: kinds)
  func duplicates(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let first = try Self.packet([Self.operation(.insert, "a", 1)])
    let answer = Self.receipt(try await store.take(first))
    _ = try await store.take(try Self.packet([Self.operation(.delete, "a")], after: first.id))
    #expect(try await store.take(first) == .applied(RecordApplied(receipt: try #require(answer), wasDuplicate: true)))
    #expect(try await Self.rows(store).isEmpty)
    let again = try Self.packet([Self.operation(.insert, "a", 1)])
    #expect(Self.receipt(try await store.take(again)) != answer, "an id is never used again")
    await store.close()
  }
}
