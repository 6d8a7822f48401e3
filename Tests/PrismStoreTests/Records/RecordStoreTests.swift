import Foundation
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@Suite("Records in the store") struct RecordStoreTests {
  private static let (part, suit) = (RecordRig.part, RecordRig.suit)

  @Test("a put, a patch and a deletion are read back, also after a restart") func readsBack() async throws {
    var rig = try await RecordRig()
    #expect(await rig.put(Self.part, "a", ["n": 1]) == .stored(version: 1))
    #expect(await rig.ask(Self.part, .patch(RecordID("a")!, ["m": 2]))?.answer == .stored(version: 2))
    #expect(await rig.ask(Self.part, .patch(RecordID("b")!, ["m": 3, "x": .null]))?.answer == .stored(version: 1))
    try await rig.restart()
    #expect(await rig.record(Self.part, "a")?.fields == Array(#"{"n":1,"m":2}"#.utf8))
    #expect(await rig.record(Self.part, "b")?.fields == Array(#"{"m":3}"#.utf8))
    #expect(await rig.ask(Self.part, .delete(RecordID("a")!))?.answer == .stored(version: nil))
    #expect(await rig.record(Self.part, "a") == nil)
    #expect(await rig.ask(Self.part, .delete(RecordID("a")!)) == RecordOutcome(.stored(version: nil)))
  }

  @Test("a put that changes nothing writes nothing: not a byte goes to the log") func noChange() async throws {
    let rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1, "m": ["x": 2]])
    let (before, bytes) = (await rig.ledger(Self.part), await rig.store.storeBytes())
    let generation = await rig.store.records.tables(of: Rig.shop).first?.generation
    #expect(
      await rig.ask(Self.part, .put(RecordID("a")!, ["m": ["x": 2], "n": 1])) == RecordOutcome(.stored(version: 1)))
    #expect(await rig.ask(Self.part, .patch(RecordID("a")!, ["n": 1])) == RecordOutcome(.stored(version: 1)))
    #expect(await rig.ledger(Self.part) == before)
    #expect(await rig.store.storeBytes() == bytes)
    #expect(await rig.store.records.tables(of: Rig.shop).first?.generation == generation)
  }

  @Test("1,000 puts of one record are one operation, and the ledger counts the merged ones") func merges() async throws
  {
    let rig = try await RecordRig()
    for n in 1...1000 { _ = await rig.put(Self.part, "a", ["n": .int(n)]) }
    let packet = try #require(try await rig.claim())
    #expect(packet.operations.map(\.version) == [1000])
    #expect(try await rig.claim() == nil)
    let ledger = await rig.ledger(Self.part)
    #expect(ledger.stored == 1000 && ledger[.removed] == 999 && ledger[.claimed] == 1)
    try await rig.deliver(packet.id)
    #expect(await rig.ledger(Self.part)[.delivered] == 1)
    #expect(await rig.record(Self.part, "a")?.state == .clean)
  }

  @Test("a record is found by the server's id as by its own, once the server gave it") func serverIDs() async throws {
    let rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1])
    let packet = try #require(try await rig.claim())
    try await rig.deliver(packet.id, RecordReceipt(ids: [Self.part.name: [RecordID("a")!: RecordID("77")!]]))
    #expect(await rig.record(Self.part, "77")?.id == RecordID("a"))
    #expect(await rig.record(Self.part, "a")?.serverID == RecordID("77"))
  }

  @Test("a table takes maxRecord records and refuses one more; a tombstone holds its place") func full() async throws {
    let rig = try await RecordRig()
    for n in 1...Self.part.maxRecord { _ = await rig.put(Self.part, "r\(n)", ["n": .int(n)]) }
    guard case .refused(let refusal) = await rig.put(Self.part, "more", ["n": 0]) else { return #expect(Bool(false)) }
    #expect(refusal.code == .tableFull)
    #expect(await rig.put(Self.part, "r1", ["n": 0]) == .stored(version: 2))
    let packet = try #require(try await rig.claim())
    try await rig.deliver(packet.id)
    _ = await rig.ask(Self.part, .delete(RecordID("r1")!))
    guard case .refused? = await rig.put(Self.part, "more", ["n": 0]) else { return #expect(Bool(false)) }
    let deletion = try #require(try await rig.claim())
    try await rig.deliver(deletion.id)
    #expect(await rig.put(Self.part, "more", ["n": 0]) == .stored(version: 1))
  }

  @Test(
    "a reference must be the id of a record, or null",
    arguments: [
      (["part": "a"], nil), (["part": .null], nil), (["part": "b"], .referenceMissing), (["part": 7], .badRequest),
      (["part": ""], .badRequest), ([:], nil),
    ] as [(JSONValue, RefusalCode?)])
  func references(fields: JSONValue, code: RefusalCode?) async throws {
    let rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1])
    let answer = await rig.put(Self.suit, "s", fields)
    if let code {
      guard case .refused(let refusal)? = answer else { return #expect(Bool(false), "\(String(describing: answer))") }
      #expect(refusal.code == code)
    } else {
      #expect(answer == .stored(version: 1))
    }
  }

  @Test("what is referred to leaves first, in a packet of its own, and references hold the server's ids")
  func order() async throws {
    let rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1])
    _ = await rig.put(Self.suit, "s", ["part": "a"])
    _ = await rig.put(Self.part, "b", ["n": 2])
    let first = try #require(try await rig.claim())
    #expect(first.words == ["insert part/a", "insert part/b"])
    #expect(try await rig.claim() == nil)
    try await rig.deliver(
      first.id, RecordReceipt(ids: [Self.part.name: [RecordID("a")!: RecordID("1")!, RecordID("b")!: RecordID("2")!]]))
    let second = try #require(try await rig.claim())
    #expect(second.words == ["insert suit/s"] && second.operations[0].fields == ["part": "1"])
    try await rig.deliver(second.id)
    _ = await rig.ask(Self.part, .delete(RecordID("a")!))
    _ = await rig.ask(Self.suit, .delete(RecordID("s")!))
    _ = await rig.put(Self.part, "b", ["n": 3])
    let last = try #require(try await rig.claim())
    #expect(last.words == ["update part/b", "delete suit/s", "delete part/a"])
  }

  @Test("a circle is opened: one insert leaves without its reference, and an update follows") func circle() async throws
  {
    let rig = try await RecordRig()
    _ = await rig.put(Self.suit, "s", ["n": 1])
    _ = await rig.put(Self.suit, "t", ["peer": "s"])
    _ = await rig.put(Self.suit, "s", ["n": 1, "peer": "t"])
    let first = try #require(try await rig.claim())
    #expect(first.words == ["insert suit/s"] && first.operations[0].fields == ["n": 1])
    try await rig.deliver(first.id, RecordReceipt(ids: [Self.suit.name: [RecordID("s")!: RecordID("1")!]]))
    let second = try #require(try await rig.claim())
    #expect(second.words == ["insert suit/t"] && second.operations[0].fields == ["peer": "1"])
    try await rig.deliver(second.id, RecordReceipt(ids: [Self.suit.name: [RecordID("t")!: RecordID("2")!]]))
    let third = try #require(try await rig.claim())
    #expect(third.words == ["update suit/s"] && third.operations[0].fields == ["n": 1, "peer": "2"])
    try await rig.deliver(third.id)
    #expect(try await rig.claim() == nil)
    let ledger = await rig.ledger(Self.suit)
    #expect(ledger.isBalanced && ledger[.delivered] == 3 && ledger[.waiting] == 0)
  }

  @Test("a packet keeps its operations as they were sent, over changes and restarts") func frozen() async throws {
    var rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1])
    let packet = try #require(try await rig.claim())
    _ = await rig.put(Self.part, "a", ["n": 2])
    try await rig.restart(isKill: true)
    #expect(try await rig.store.inFlight(Rig.shop, .records).map(\.id) == [packet.id])
    #expect(try await rig.store.read(packet.id)?.metas == packet.metas)
    #expect(try await rig.claim() == nil)
    try await rig.deliver(packet.id)
    #expect(try await rig.store.lastAccepted(Rig.shop, .records) == packet.id)
    #expect(try await rig.claim()?.words == ["update part/a"])
  }

  @Test("a refused operation marks its record, with the server's words, until it is changed") func refused()
    async throws
  {
    let rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1])
    let packet = try #require(try await rig.claim())
    let op = packet.operations[0].op
    try await rig.deliver(packet.id, RecordReceipt(refused: [.init(op: op, message: "not here")]))
    #expect(await rig.record(Self.part, "a")?.refusal == "not here")
    #expect(await rig.ledger(Self.part)[.dead] == 1)
    #expect(try await rig.claim() == nil)
    #expect(await rig.put(Self.part, "a", ["n": 2]) == .stored(version: 2))
    #expect(await rig.record(Self.part, "a")?.refusal == nil)
    #expect(try await rig.claim()?.words == ["insert part/a"])
  }

  @Test("a synchronization takes no change that began to wait after it") func bound() async throws {
    let rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1])
    let bound = await rig.store.records.bound
    _ = await rig.put(Self.part, "b", ["n": 1])
    _ = await rig.put(Self.part, "a", ["n": 2])
    #expect(try await rig.claim(bound: bound)?.words == ["insert part/a"])
    #expect(try await rig.claim(bound: bound) == nil)
  }

  @Test("starts that die set the database aside, and its records are brought over; what was in flight is sent again")
  func broughtOver() async throws {
    var rig = try await RecordRig()
    for id in ["a", "b", "c"] { _ = await rig.put(Self.part, id, ["n": 1]) }
    let first = try #require(try await rig.claim(items: 1))
    try await rig.deliver(first.id, RecordReceipt(ids: [Self.part.name: [RecordID("a")!: RecordID("1")!]]))
    _ = try #require(try await rig.claim(items: 1))
    for _ in 0..<3 { try await rig.restart(isKill: true, isReady: false) }
    #expect(FileManager.default.fileExists(atPath: rig.rig.folder + "/prism.db.corrupt-1700000000000"))
    #expect(await rig.record(Self.part, "1")?.state == .clean)
    #expect(try await rig.claim()?.words == ["insert part/b", "insert part/c"])
    let ledger = await rig.ledger(Self.part)
    #expect(ledger.isBalanced && ledger.stored == 3 && ledger[.delivered] == 1 && ledger[.corrupt] == 0)
  }

  @Test("a page ends at its limit, and tells that more follow") func pages() async throws {
    let rig = try await RecordRig()
    for id in ["c", "a", "b"] { _ = await rig.put(Self.part, id, ["n": 1]) }
    guard case .list(let first, _, true)? = await rig.ask(Self.part, .list(after: nil, limit: 2))?.answer,
      case .list(let rest, let generation, false)? = await rig.ask(Self.part, .list(after: first[1].id, limit: 2))?
        .answer
    else { return #expect(Bool(false)) }
    #expect((first + rest).map(\.id.text) == ["a", "b", "c"] && generation == 3)
  }
}
