import PrismProtocol
import PrismStore
import Synchronization
import Testing

@Suite("The store announces changes of records") struct RecordChangeTests {
  private static let (part, suit) = (RecordRig.part, RecordRig.suit)

  /// The changes that the store announced, in its order.
  private final class Heard: Sendable {
    private let changes = Mutex<[RecordTableChange]>([])
    func take() -> [RecordTableChange] {
      changes.withLock { changes in
        defer { changes = [] }
        return changes
      }
    }
    init(_ store: ReportStore) async {
      await store.observeRecords { [self] told in changes.withLock { $0 += told } }
    }
  }

  private static func change(_ generation: Int64, _ ids: [String]?, of table: RecordTable = part) -> RecordTableChange {
    RecordTableChange(Rig.shop, table.name, generation: generation, ids: ids.map { $0.compactMap { RecordID($0) } })
  }

  private static func request(
    _ rig: RecordRig, _ table: RecordTable, _ action: RecordRequest.Action
  ) -> ReportBatch {
    var batch = rig.rig.batch([])
    batch.record = RecordRequest(namespace: Rig.shop, table: table, action: action, bytes: 100)
    return batch
  }

  @Test("each commit is announced with the records that it changed, each once, by table")
  func commits() async throws {
    let rig = try await RecordRig()
    let heard = await Heard(rig.store)
    let actions: [(RecordTable, RecordRequest.Action)] = [
      (Self.part, .put(RecordID("b")!, ["n": 1])), (Self.part, .put(RecordID("a")!, ["n": 1])),
      (Self.part, .patch(RecordID("b")!, ["n": 2])), (Self.suit, .put(RecordID("s")!, ["part": "a"])),
      (Self.part, .get(RecordID("a")!)),
    ]
    _ = await rig.store.append(actions.map { Self.request(rig, $0, $1) })
    #expect(heard.take() == [Self.change(3, ["b", "a"]), Self.change(1, ["s"], of: Self.suit)])
    _ = await rig.ask(Self.part, .delete(RecordID("b")!))
    #expect(heard.take() == [Self.change(4, ["b"])])
  }

  @Test("one user fills a table, and others have places in it all the same, each a sixteenth and a quarter together")
  func shares() async throws {
    var rig = try await RecordRig()
    let table = RecordTable(Self.part.name, maxRecord: 48)
    func put(_ count: Int, by user: UInt32, _ name: String) async -> Int {
      var stored = 0
      for number in 0..<count {
        var batch = rig.rig.batch([], from: user)
        batch.record = RecordRequest(
          namespace: Rig.shop, table: table, action: .put(RecordID("\(name)\(number)")!, ["n": 1]), bytes: 100)
        guard case .committed(let outcomes) = await rig.store.append([batch]) else { return -1 }
        if case .stored? = outcomes.first?.record?.answer { stored += 1 }
      }
      return stored
    }
    #expect(await put(60, by: 1, "a") == 48)
    #expect(await put(10, by: 2, "b") == 3)
    try await rig.restart()
    #expect(await put(10, by: 2, "b") == 3, "those are there")
    #expect(await put(10, by: 2, "c") == 0)
    for user: UInt32 in 3...5 { #expect(await put(10, by: user, "d\(user)") == 3) }
    #expect(await put(10, by: 6, "e") == 0, "a quarter is taken")
    #expect(await rig.record(table, "d50")?.version == 1)
  }

  @Test("nothing is announced for a put that changes nothing, a refused one, a question, a report or a claim")
  func nothing() async throws {
    let rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1])
    let heard = await Heard(rig.store)
    _ = await rig.put(Self.part, "a", ["n": 1])
    _ = await rig.put(Self.suit, "s", ["part": "none"])
    _ = await rig.ask(Self.part, .delete(RecordID("none")!))
    #expect(
      await rig.ask(Self.part, .watch)?.answer == .watching(Rig.shop, Self.part.name, generation: 1))
    let packet = try #require(try await rig.claim())
    try await rig.deliver(packet.id)
    #expect(heard.take() == [])
  }

  @Test("more records than a change names are announced without ids")
  func many() async throws {
    let rig = try await RecordRig()
    let heard = await Heard(rig.store)
    func puts(_ count: Int) -> [ReportBatch] {
      (0..<count).map { Self.request(rig, Self.suit, .put(RecordID("r\($0)")!, ["n": .int(count)])) }
    }
    _ = await rig.store.append(puts(RecordTableChange.idsMax))
    #expect(heard.take().map { $0.ids?.count } == [RecordTableChange.idsMax])
    _ = await rig.store.append(puts(RecordTableChange.idsMax + 1))
    #expect(heard.take().map(\.ids) == [nil])
    _ = await rig.put(Self.suit, "r1", ["n": 0])
    #expect(heard.take().map(\.ids) == [[RecordID("r1")!]], "the next commit has ids again")
  }

  @Test("a change that the server refuses is announced, so that its program learns of it")
  func refused() async throws {
    let rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1])
    _ = await rig.put(Self.part, "b", ["n": 1])
    let heard = await Heard(rig.store)
    let packet = try #require(try await rig.claim())
    let op = packet.operations[1].op
    try await rig.deliver(packet.id, RecordReceipt(refused: [.init(op: op, message: "no such price")]))
    #expect(heard.take() == [Self.change(3, ["b"])])
    let refused = try await rig.store.refusedRecords(of: Rig.shop, after: 0, limit: 10)
    #expect(refused.map(\.record.id) == [RecordID("b")!])
    #expect(refused.map(\.record.refusal) == ["no such price"] && refused.map(\.table) == [Self.part.name])
    _ = await rig.put(Self.part, "b", ["n": 2])
    #expect(try await rig.store.refusedRecords(of: nil, after: 0, limit: 10) == [])
  }

  @Test(
    "the server's changes are announced: operations with their records, a whole table without, a deletion with its cascade"
  )
  func fromTheServer() async throws {
    let rig = try await DownRig()
    let heard = await Heard(rig.store)
    func words() -> [String] {
      heard.take().map { "\($0.table) \($0.ids.map { $0.map(\.text).joined(separator: ",") } ?? "all")" }
    }
    try await rig.take("price", [DownRecord("a", "{}"), DownRecord("b", "{}")], sequence: 1)
    #expect(words() == ["price all"])
    try await rig.take("bundle", [DownRecord("x", #"{"price":"a"}"#)], sequence: 1)
    #expect(words() == ["bundle all"])
    _ = try await rig.apply(
      "price", [DownOperation(2, "price", "b", #"{"n":1}"#), DownOperation(3, "price", "c", "{}")])
    #expect(words() == ["price b,c"])
    _ = try await rig.apply("price", [DownOperation(4, "price", "a", nil), DownOperation(5, "price", "none", nil)])
    #expect(Set(words()) == ["price a", "bundle x"])
    try await rig.take("setting", [], sequence: 5)
    _ = words()
    _ = try await rig.apply("setting", [DownOperation(6, "setting", "S1", #"{"n":1}"#, local: "s")])
    #expect(words() == ["setting s"], "by the id that programs know")
    _ = try await rig.apply("setting", [DownOperation(7, "setting", "S1", #"{"n":1}"#, local: "s")])
    #expect(words() == [], "nothing that a program sees was changed")
  }

  @Test("refused records are listed page by page, over tables, of one namespace or of all")
  func refusedPages() async throws {
    let rig = try await RecordRig()
    for n in 0..<3 {
      _ = await rig.put(Self.part, "a\(n)", ["n": 1])
      _ = await rig.put(Self.suit, "s\(n)", ["n": 1])
    }
    let packet = try #require(try await rig.claim())
    let refused = packet.operations.map { RecordReceipt.Refused(op: $0.op, message: $0.id.text) }
    try await rig.deliver(packet.id, RecordReceipt(refused: refused))
    var (pages, after): ([[String]], Int64) = ([], 0)
    repeat {
      let page = try await rig.store.refusedRecords(of: nil, after: after, limit: 4)
      pages.append(page.map(\.record.id.text))
      after = page.last?.number ?? after
    } while pages.last?.isEmpty == false
    #expect(pages == [["a0", "s0", "a1", "s1"], ["a2", "s2"], []])
    let others = try await rig.store.refusedRecords(of: NamespaceName("other")!, after: 0, limit: 9)
    #expect(others.isEmpty)
  }

  @Test(
    "a change on a condition is made if the condition holds, or if it is made already",
    arguments: [
      (.version(1), .put(RecordID("a")!, ["n": 2]), true), (.version(2), .put(RecordID("a")!, ["n": 2]), false),
      (.version(7), .put(RecordID("a")!, ["n": 1]), true), (.absent, .put(RecordID("a")!, ["n": 2]), false),
      (.absent, .put(RecordID("b")!, ["n": 2]), true), (.present, .patch(RecordID("a")!, ["n": 2]), true),
      (.present, .patch(RecordID("b")!, ["n": 2]), false), (.version(1), .delete(RecordID("a")!), true),
      (.version(2), .delete(RecordID("a")!), false), (.version(2), .delete(RecordID("b")!), true),
      (.version(1), .put(RecordID("b")!, ["n": 2]), false),
    ] as [(VersionCondition, RecordRequest.Action, Bool)])
  func conditions(condition: VersionCondition, action: RecordRequest.Action, isMade: Bool) async throws {
    let rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1])
    let before = await rig.ledger(Self.part)
    var batch = Self.request(rig, Self.part, action)
    batch.record?.condition = condition
    guard case .committed(let outcomes) = await rig.store.append([batch]), let answer = outcomes.first?.record?.answer
    else { return #expect(Bool(false)) }
    if case .refused(let refusal) = answer {
      #expect(!isMade && refusal.code == .versionMismatch)
      #expect(await rig.ledger(Self.part) == before)
    } else {
      #expect(isMade)
    }
  }

  @Test("a tombstone counts as an absent record") func tombstone() async throws {
    let rig = try await RecordRig()
    _ = await rig.put(Self.part, "a", ["n": 1])
    let packet = try #require(try await rig.claim())
    try await rig.deliver(packet.id)
    _ = await rig.ask(Self.part, .delete(RecordID("a")!))
    var batch = Self.request(rig, Self.part, .put(RecordID("a")!, ["n": 3]))
    batch.record?.condition = .absent
    guard case .committed(let outcomes) = await rig.store.append([batch]) else { return #expect(Bool(false)) }
    #expect(outcomes.first?.record?.answer == .stored(version: 3))
  }
}
