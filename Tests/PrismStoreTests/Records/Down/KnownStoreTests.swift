import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismStore

@Suite("Absence in another store") struct KnownStoreTests {
  private static let (first, other) = (StoreMark(id: 1), StoreMark(id: 2))

  /// A rig whose first store sent these records of both kinds of tables.
  private static func rig(onConflict: RecordConflict = .newest) async throws -> DownRig {
    let rig = try await DownRig(onConflict: onConflict)
    #expect(try await rig.recognize(first) == .same)
    try await rig.take("price", [DownRecord("a", "{}"), DownRecord("b", "{}")], sequence: 5)
    try await rig.take("setting", [DownRecord("s", #"{"n":1}"#)], sequence: 5)
    _ = await rig.put("setting", "mine", ["n": 2])
    _ = try await rig.upload()
    return rig
  }

  @Test("a whole answer of another store deletes nothing, and one that was accepted does")
  func other() async throws {
    var rig = try await Self.rig()
    rig.mark = Self.other
    #expect(try await rig.recognize(Self.other) == .other)
    #expect(await rig.after("price") == nil, "all records are asked for")
    try await rig.markAll()
    #expect(try await rig.take("price", [DownRecord("c", "{}")], sequence: 1).kept == 2)
    try await rig.take("setting", [], sequence: 1)
    #expect(await rig.ids("price") == ["a", "b", "c"])
    #expect(await rig.ids("setting") == ["mine", "s"])
    #expect(try await rig.upload().map { "\($0.kind.name) \($0.id)" } == ["insert s", "insert mine"])
    #expect(try await rig.store.acceptStore(Self.first, of: Rig.shop) == .isOther(Self.other))
    #expect(try await rig.store.acceptStore(of: Rig.shop) == .accepted(Self.other, isNews: true))
    try await rig.take("price", [DownRecord("c", "{}")], sequence: 2)
    #expect(await rig.ids("price") == ["c"])
  }

  @Test("an answer to a question that was asked of another store changes nothing", arguments: ["price", "setting"])
  func late(table: String) async throws {
    var rig = try await Self.rig()
    let ids = await rig.ids(table)
    #expect(try await rig.recognize(Self.other) == .other)
    try await rig.markAll()
    #expect(try await rig.take(table, [], sequence: 9).end == .outdated)
    #expect(try await rig.apply(table, [DownOperation(9, table, ids[0], nil)], after: 0).end == .outdated)
    rig.mark = Self.other
    #expect(try await rig.take(table, [], sequence: 1).end == .done)
    #expect(await rig.ids(table) == ids)
  }

  @Test("a packet that the store lost is news once, also over a restart, and its ids name no other record's")
  func lostPacket() async throws {
    var rig = try await Self.rig()
    let last = try #require(try await rig.store.lastAccepted(Rig.shop, .records))
    #expect(try await rig.recognize(Self.first, missing: last) == .knowsLess)
    #expect(try await rig.recognize(Self.first, missing: last) == .same)
    try await rig.records.restart(isKill: true)
    #expect(try await rig.recognize(Self.first, missing: last) == .same)
    try await rig.markAll()
    #expect(try await rig.upload().map { "\($0.kind.name) \($0.id)" } == ["insert s", "insert mine"])
    let next = try #require(try await rig.store.lastAccepted(Rig.shop, .records))
    #expect(try await rig.recognize(Self.first, missing: next) == .knowsLess)
  }

  @Test(
    "the id that another store gives to a record is not that of the record which had it before",
    arguments: [StoreReceipt(store: StoreMark(id: 2), isChainBroken: false), .init(store: first, isChainBroken: true)])
  func givenIDs(receipt: StoreReceipt) async throws {
    let rig = try await Self.rig()
    _ = await rig.put("setting", "new", ["n": 3])
    let packet = try #require(try await rig.records.claim(tables: rig.tables))
    // The record that came down has this id.
    let ids = [packet.operations[0].table: [RecordID("new")!: RecordID("s")!]]
    try await rig.records.deliver(packet.id, RecordReceipt(ids: ids, store: receipt))
    #expect(await rig.ids("setting") == ["mine", "new", "s"])
  }

  @Test("a deletion of a store that is not accepted is counted, and not carried out", arguments: [false, true])
  func deletion(isAccepted: Bool) async throws {
    var rig = try await Self.rig()
    rig.mark = Self.other
    _ = try await rig.recognize(Self.other)
    try await rig.markAll()
    try await rig.take("price", [DownRecord("a", "{}"), DownRecord("b", "{}")], sequence: 1)
    if isAccepted {
      _ = try await rig.store.acceptStore(of: Rig.shop)
      try await rig.take("price", [DownRecord("a", "{}"), DownRecord("b", "{}")], sequence: 1)
    }
    #expect(try await rig.apply("price", [DownOperation(2, "price", "a", nil)]).end == .done)
    #expect(await rig.ids("price") == (isAccepted ? ["b"] : ["a", "b"]))
    #expect(await rig.store.records.store(of: Rig.shop)?.kept[DownRig.price.name] == (isAccepted ? nil : 1))
    #expect(await rig.after("price") == 2)
  }

  @Test("the trusted store with less than it sent keeps what it lacks, and its single deletions are taken")
  func restored() async throws {
    let rig = try await Self.rig()
    #expect(try await rig.recognize(Self.first, knowsLess: true) == .knowsLess)
    try await rig.markAll()
    #expect(try await rig.take("price", [DownRecord("a", "{}")], sequence: 3).kept == 1)
    #expect(await rig.ids("price") == ["a", "b"])
    _ = try await rig.apply("price", [DownOperation(4, "price", "b", nil)])
    #expect(await rig.ids("price") == ["a"])
    try await rig.take("price", [DownRecord("a", "{}")], sequence: 4)
    #expect(await rig.store.records.store(of: Rig.shop)?.kept[DownRig.price.name] == nil, "it has all that is here")
  }

  @Test("the deletions that a store lost are sent again, but for what came back since") func deletions() async throws {
    var rig = try await Self.rig()
    for id in ["a", "b", "c"] { _ = await rig.put("setting", id, ["n": 1]) }
    _ = try await rig.upload()
    let given = try #require(await rig.record("setting", "a")?.serverID)
    for id in ["a", "b", "c"] { await rig.delete("setting", id) }
    _ = try await rig.upload()
    _ = await rig.put("setting", "b", ["n": 2])
    _ = try await rig.upload()
    try await rig.records.restart(isKill: true)
    #expect(try await rig.upload().isEmpty, "the store has carried them out")
    #expect(try await rig.recognize(Self.first, knowsLess: true) == .knowsLess)
    try await rig.markAll()
    let back = DownRecord(id: given, localID: RecordID("a"), fields: Array(#"{"n":1}"#.utf8), time: 1)
    try await rig.take("setting", [back, DownRecord("s", #"{"n":1}"#, time: 1)], sequence: 6)
    let ids = await rig.ids("setting")
    #expect(ids == ["b", "mine", "s"], "\(ids)")
    let sent = try await rig.upload().map { "\($0.kind.name) \($0.id)" }
    #expect(sent.sorted() == ["delete a", "delete c", "insert b", "insert mine"], "\(sent)")
    #expect(try await rig.recognize(Self.other) == .other, "they are kept on")
    try await rig.markAll()
    #expect(try await rig.upload().count { $0.kind == .delete } == 2)
  }

  @Test(
    "a record that was deleted and is put again is new to a store that comes back without it",
    arguments: RecordConflict.allCases)
  func putAgain(onConflict: RecordConflict) async throws {
    var rig = try await Self.rig(onConflict: onConflict)
    rig.mark = Self.other
    _ = try await rig.recognize(Self.other)
    try await rig.markAll()
    _ = await rig.put("setting", "d", ["n": 1])
    _ = try await rig.upload()
    await rig.delete("setting", "d")
    rig.mark = Self.first
    #expect(try await rig.recognize(Self.first) == .back)
    try await rig.markAll()
    _ = await rig.put("setting", "d", ["n": 2])
    try await rig.take("setting", [DownRecord("s", #"{"n":1}"#, time: 1)], sequence: 6)
    #expect(await rig.fields("setting", "d") == #"{"n":2}"#)
    #expect(try await rig.upload().map { "\($0.kind.name) \($0.id)" }.contains("insert d"))
  }

  @Test("a record that is deleted before another store heard of it is deleted there, too") func forgotten() async throws
  {
    let rig = try await Self.rig()
    #expect(try await rig.recognize(Self.first, knowsLess: true) == .knowsLess)
    try await rig.markAll()
    await rig.delete("setting", "mine")
    _ = await rig.put("setting", "new", ["n": 1])
    await rig.delete("setting", "new")
    #expect(try await rig.upload().map { "\($0.kind.name) \($0.id)" }.sorted() == ["delete mine", "insert s"])
  }

  @Test("a table that the store never had is no empty one") func unheard() async throws {
    let rig = try await Self.rig()
    #expect(try await rig.take("price", [], sequence: 6, isUnheard: true).kept == 2)
    #expect(await rig.ids("price") == ["a", "b"])
    try await rig.take("price", [], sequence: 7)
    #expect(await rig.ids("price") == ["a", "b"], "nor later, until its store has all that is here")
  }

  @Test("a store without an identity may delete single records, but not a whole table", arguments: [1, 2])
  func old(left: Int) async throws {
    var rig = try await DownRig()
    rig.mark = nil
    let all = ["a", "b"].map { DownRecord($0, "{}") }
    for table in ["price", "setting"] {
      try await rig.take(table, all, sequence: 5)
      try await rig.take(table, Array(all.dropFirst(left)), sequence: 6)
      #expect(await rig.ids(table) == (left == 1 ? ["b"] : ["a", "b"]))
    }
  }

  @Test("a collector that tells no identity any more is not the store that did") func silent() async throws {
    var rig = try await Self.rig()
    rig.mark = nil
    try await rig.take("price", [DownRecord("b", "{}")], sequence: 9)
    #expect(await rig.ids("price") == ["a", "b"])
  }

  @Test("an older value at the store loses against the one that it had", arguments: RecordConflict.allCases)
  func older(rule: RecordConflict) async throws {
    let rig = try await Self.rig(onConflict: rule)
    try await rig.take("setting", [DownRecord("s", #"{"n":7}"#, time: 70)], sequence: 6)
    _ = try await rig.recognize(Self.first, knowsLess: true)
    try await rig.markAll()
    try await rig.take("setting", [DownRecord("s", #"{"n":1}"#, time: 10)], sequence: 5)
    #expect(await rig.fields("setting", "s") == #"{"n":7}"#)
    #expect(try await rig.upload().map(\.id.text).contains("s"))
    _ = try await rig.recognize(Self.first, knowsLess: true)
    try await rig.markAll()
    try await rig.take("setting", [DownRecord("s", #"{"n":8}"#, time: 80)], sequence: 5)
    #expect(await rig.fields("setting", "s") == #"{"n":8}"#, "a newer one wins")
  }

  @Test("what is sent again survives a kill between two slices, and a reference names the record of this device")
  func references() async throws {
    var rig = try await Self.rig()
    for number in 1...700 { _ = await rig.put("knob", "k\(number)", ["setting": "mine"]) }
    try await rig.take("knob", [DownRecord("t", #"{"setting":"Smine"}"#)], sequence: 5)
    _ = try await rig.upload()
    _ = try await rig.recognize(Self.other)
    rig.mark = Self.other
    #expect(try await rig.store.markRecords(rig.tables, of: Rig.shop))
    #expect(try await rig.records.claim(tables: rig.tables) == nil, "nothing leaves before all are marked")
    try await rig.records.restart(isKill: true)
    try await rig.markAll()
    let sent = try await rig.upload()
    #expect(sent.count == 703)
    #expect(sent.first { $0.id.text == "t" }?.fields?["setting"]?.string == "Smine", "the id that the new store gave")
    #expect(await rig.fields("knob", "t") == #"{"setting":"mine"}"#)
    #expect(await rig.ledger("knob").isBalanced)
  }

  @Test("a change in flight while another store is met is sent once more") func inFlight() async throws {
    let rig = try await Self.rig()
    _ = await rig.put("setting", "mine", ["n": 3])
    let packet = try #require(try await rig.records.claim(tables: rig.tables))
    _ = try await rig.recognize(Self.other)
    try await rig.markAll()
    try await rig.records.deliver(packet.id)
    #expect(try await rig.upload().map { "\($0.kind.name) \($0.id)" } == ["insert s", "update mine"])
    #expect(await rig.ledger("setting").isBalanced)
  }
}

extension DownRig {
  func recognize(
    _ store: StoreMark, knowsLess: Bool = false, missing: PacketID? = nil
  ) async throws -> KnownStore.Change {
    try await self.store.recognize(store, knowsLess: knowsLess, missing: missing, in: Rig.shop)
  }

  func markAll() async throws { while try await store.markRecords(tables, of: Rig.shop) {} }
}
