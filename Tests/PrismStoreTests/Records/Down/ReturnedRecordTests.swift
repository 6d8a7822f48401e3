import PrismProtocol
import PrismStore
import Testing

@Suite("Records that the server deletes and puts again, in the store") struct ReturnedRecordTests {
  /// Why the first answer is not executed to its end.
  enum Cut: CaseIterable { case never, dependency, fullTable, operationInFlight }

  /// `7` is deleted, `Sx` comes, at which a cut falls, and `7` is back.
  private static func operations(_ table: String, _ cut: Cut) -> [DownOperation] {
    [
      DownOperation(5, table, "7", nil),
      DownOperation(7, table, "Sx", #"{"n":7}"#, local: "x", after: cut == .dependency ? "o6" : nil),
      DownOperation(8, table, "7", #"{"n":2}"#),
    ]
  }

  @Test(
    "what refers to one and is ahead of it stays, at any cut of the answer",
    arguments: [Cut.never, .dependency, .fullTable])
  func down(cut: Cut) async throws {
    var rig = try await DownRig()
    try await rig.take("price", [DownRecord("7", #"{"n":1}"#)], sequence: 1)
    try await rig.take("bundle", [], sequence: 1)
    _ = try await rig.apply("bundle", [DownOperation(9, "bundle", "b", #"{"price":"7"}"#)])
    if cut == .fullTable { rig.tables[0].maxRecord = 1 }
    let operations = Self.operations("price", cut)
    let first = try await rig.apply("price", operations, othersThrough: cut == .dependency ? 5 : .max)
    #expect((first.end == .done) == (cut == .never))
    #expect(await rig.ids("bundle") == ["b"])
    rig.tables[0].maxRecord = 3000
    let after = try #require(await rig.after("price"))
    #expect(try await rig.apply("price", operations.filter { $0.sequence > after }).end == .done)
    #expect(await rig.ids("price") == ["7", "Sx"])
    #expect(await rig.fields("price", "7") == #"{"n":2}"#)
    #expect(await rig.ids("bundle") == ["b"])
  }

  @Test("so does a record that both sides change, by its local id or the server's", arguments: Cut.allCases)
  func both(cut: Cut) async throws {
    var rig = try await DownRig()
    try await rig.take("setting", [DownRecord("7", #"{"n":1}"#, local: "a")], sequence: 1)
    try await rig.take("knob", [], sequence: 1)
    _ = await rig.put("knob", "k", ["setting": "a"])
    _ = try await rig.upload()
    _ = try await rig.apply("knob", [DownOperation(9, "knob", "w", #"{"setting":"7"}"#)])
    if cut == .fullTable { rig.tables[2].maxRecord = 1 }
    if cut == .operationInFlight { _ = await rig.put("setting", "x", ["n": 6]) }
    let packet = try await rig.records.claim(tables: rig.tables)
    let operations = Self.operations("setting", cut)
    let first = try await rig.apply("setting", operations, othersThrough: cut == .dependency ? 5 : .max)
    #expect((first.end == .done) == (cut == .never))
    #expect(await rig.ids("knob") == ["k", "w"])
    rig.tables[2].maxRecord = 20
    if let packet {
      var receipt = RecordReceipt()
      receipt.ids[rig["setting"].name] = [RecordID("x")!: RecordID("Sx")!]
      try await rig.records.deliver(packet.id, receipt)
    }
    let after = try #require(await rig.after("setting"))
    #expect(try await rig.apply("setting", operations.filter { $0.sequence > after }).end == .done)
    #expect(await rig.ids("setting") == ["a", "x"])
    #expect(await rig.fields("setting", "a") == #"{"n":2}"#)
    #expect(await rig.ids("knob") == ["k", "w"])
    #expect(try await rig.upload().isEmpty)
  }

  @Test(
    "one that was changed here meanwhile is one conflict, and stays one record",
    arguments: [RecordConflict.local, .remote])
  func conflict(rule: RecordConflict) async throws {
    let rig = try await DownRig(onConflict: rule)
    try await rig.take("setting", [DownRecord("7", #"{"n":1}"#, local: "a")], sequence: 1)
    _ = await rig.put("setting", "a", ["n": 3])
    let outcome = try await rig.apply("setting", Self.operations("setting", .never))
    #expect(outcome.clashes.map(\.keptLocal) == [rule == .local])
    #expect(await rig.ids("setting") == ["a", "x"])
    #expect(try await rig.upload().map(\.kind) == (rule == .local ? [.update] : []))
  }

  @Test(
    "one that is gone at the end takes along what refers to it, also if its return never comes",
    arguments: [false, true])
  func gone(isReturnSeen: Bool) async throws {
    let rig = try await DownRig()
    try await rig.take("price", [DownRecord("7", "{}")], sequence: 1)
    try await rig.take("bundle", [DownRecord("b", #"{"price":"7"}"#)], sequence: 4)
    let deletion = DownOperation(9, "price", "7", nil)
    if isReturnSeen {
      _ = try await rig.apply("price", Self.operations("price", .never) + [deletion])
    } else {
      let first = try await rig.apply("price", Self.operations("price", .dependency), othersThrough: 5)
      #expect(first.end == .waits(before: 7))
      #expect(await rig.ids("bundle") == ["b"])
      _ = try await rig.apply("price", [deletion])
    }
    #expect(await rig.ids("price") == (isReturnSeen ? ["Sx"] : []))
    #expect(await rig.ids("bundle") == [])
  }

  @Test("one whose insertion has no answer yet is waited for, so that it is not there twice") func insertionInFlight()
    async throws
  {
    let rig = try await DownRig()
    try await rig.take("setting", [], sequence: 1)
    _ = await rig.put("setting", "a", ["n": 1])
    let packet = try #require(try await rig.records.claim(tables: rig.tables))
    let operations = [
      DownOperation(5, "setting", "7", nil, local: "a"), DownOperation(8, "setting", "7", #"{"n":2}"#),
    ]
    #expect(try await rig.apply("setting", operations).end == .inFlight)
    #expect(await rig.after("setting") == 1)
    var receipt = RecordReceipt()
    receipt.ids[rig["setting"].name] = [RecordID("a")!: RecordID("7")!]
    try await rig.records.deliver(packet.id, receipt)
    #expect(try await rig.apply("setting", operations).end == .done)
    #expect(await rig.ids("setting") == ["a"])
    #expect(await rig.fields("setting", "a") == #"{"n":2}"#)
  }

  @Test("a record that refers to another one at the end of the answer stays") func refersElsewhere() async throws {
    var rig = try await DownRig()
    let name = RecordTableName("node")!
    rig.tables.append(RecordTable(name, direction: .both, references: ["peer": name]))
    let nodes = [DownRecord("1", "{}"), DownRecord("2", #"{"peer":"1"}"#), DownRecord("3", "{}")]
    try await rig.take("node", nodes, sequence: 1)
    let operations = [DownOperation(5, "node", "1", nil), DownOperation(6, "node", "2", #"{"peer":"3"}"#)]
    #expect(try await rig.apply("node", operations).clashes.isEmpty)
    #expect(await rig.ids("node") == ["2", "3"])
    #expect(try await rig.upload().isEmpty)
  }
}
