import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@Suite("Records that both sides change, in the store") struct DownMergingTests {
  private static let now: Int64 = 1_700_000_000_000

  /// A setting `a` that both sides have as `{"n":1}`, with the server's id 7.
  private static func rig(_ onConflict: RecordConflict = .newest) async throws -> DownRig {
    let rig = try await DownRig(onConflict: onConflict)
    try await rig.take("setting", [DownRecord("7", #"{"n":1}"#, local: "a", time: now - 9000)], sequence: 1)
    return rig
  }

  @Test("a record of the server is there under its local id, or the server's, and is clean") func fromServer()
    async throws
  {
    let rig = try await Self.rig()
    #expect(await rig.ids("setting") == ["a"])
    let record = try #require(await rig.record("setting", "7"))
    #expect(record.id.text == "a" && record.state == .clean && record.changedTime == Self.now - 9000)
    _ = try await rig.apply("setting", [DownOperation(2, "setting", "volume", #"{"n":2}"#, time: Self.now)])
    #expect(await rig.record("setting", "volume")?.serverID == RecordID("volume"))
    let update = DownOperation(3, "setting", "7", #"{"n":3}"#, time: Self.now)
    #expect(try await rig.apply("setting", [update]).clashes.isEmpty)
    #expect(await rig.fields("setting", "a") == #"{"n":3}"#)
    #expect(await rig.record("setting", "a")?.version == 2)
    _ = try await rig.apply("setting", [DownOperation(4, "setting", "7", nil, time: Self.now)])
    #expect(await rig.ids("setting") == ["volume"])
    #expect(try await rig.upload().isEmpty)
    #expect(await rig.ledger("setting") == Ledger())
  }

  @Test(
    "of two changes the rule's holds, the other one is reported, and a change that holds here is sent as the later one",
    arguments: [
      (RecordConflict.newest, Int64(-1), true), (.newest, 0, false), (.newest, 1, false), (.local, 5000, true),
      (.remote, -5000, false),
    ])
  func conflict(rule: RecordConflict, offset: Int64, keepsLocal: Bool) async throws {
    var rig = try await Self.rig(rule)
    _ = await rig.put("setting", "a", ["n": 2])
    let update = DownOperation(2, "setting", "7", #"{"n":3}"#, time: Self.now + offset)
    let outcome = try await rig.apply("setting", [update])
    let clash = try #require(outcome.clashes.first)
    #expect(clash.keptLocal == keepsLocal && clash.id.text == "a")
    #expect(clash.local == Array(#"{"n":2}"#.utf8) && clash.remote == Array(#"{"n":3}"#.utf8))
    #expect(clash.localTime == Self.now && clash.remoteTime == Self.now + offset)
    #expect(await rig.fields("setting", "a") == (keepsLocal ? #"{"n":2}"# : #"{"n":3}"#))
    let standing = await rig.store.records.standing(of: rig["setting"].name, in: Rig.shop)
    #expect(standing?.keptLocal == (keepsLocal ? 1 : 0) && standing?.keptRemote == (keepsLocal ? 0 : 1))
    let sent = try await rig.upload()
    #expect(sent.count == (keepsLocal ? 1 : 0))
    #expect(sent.allSatisfy { $0.kind == .update && $0.changedTime > Self.now + offset && $0.serverID?.text == "7" })
    let ledger = await rig.ledger("setting")
    #expect(ledger.isBalanced && ledger.stored == 1 && ledger[keepsLocal ? .delivered : .removed] == 1)
    try await rig.records.restart(isKill: true)
    #expect(await rig.store.records.standing(of: rig["setting"].name, in: Rig.shop) == standing)
  }

  @Test("a clock that is ahead of the server's does not decide") func clocks() async throws {
    var rig = try await Self.rig()
    rig.clockAhead = 3_600_000
    _ = await rig.put("setting", "a", ["n": 2])
    let update = DownOperation(2, "setting", "7", #"{"n":3}"#, time: Self.now - 3_500_000)
    #expect(try await rig.apply("setting", [update]).clashes.first?.keptLocal == false)
    _ = await rig.put("setting", "a", ["n": 4])
    let older = DownOperation(3, "setting", "7", #"{"n":5}"#, time: Self.now - 3_700_000)
    #expect(try await rig.apply("setting", [older]).clashes.first?.keptLocal == true)
    #expect(await rig.fields("setting", "a") == #"{"n":4}"#)
  }

  @Test(
    "of two changes the later one holds, though this side's clock was wrong at its change and was set since",
    arguments: [
      (Int64(-1_700_000_000_000), Int64(-2000), true, false), (-7_200_000, -2000, true, true),
      (315_360_000_000, 2000, false, false), (315_360_000_000, 2000, false, true),
      (-1_700_000_000_000, -2000, true, true),
    ])
  func clockThatWasWrong(error: Int64, offset: Int64, keepsLocal: Bool, isRestarted: Bool) async throws {
    var rig = try await Self.rig()
    let time = rig.records.rig.time
    time.stepWallClock(milliseconds: error)
    _ = await rig.put("setting", "a", ["n": 2])
    if isRestarted { try await rig.records.restart() }
    time.stepWallClock(milliseconds: -error)
    if isRestarted { try await rig.records.restart(isKill: true) }
    let update = DownOperation(2, "setting", "7", #"{"n":3}"#, time: Self.now + offset)
    #expect(try await rig.apply("setting", [update]).clashes.first?.keptLocal == keepsLocal)
    let sent = try await rig.upload().map(\.changedTime)
    #expect(sent == (keepsLocal ? [Self.now] : []))
  }

  @Test("a change of an earlier boot in which the clock was set keeps its time under a clock that begins in 1970")
  func clockOfThisBoot() async throws {
    var rig = try await Self.rig()
    let time = rig.records.rig.time
    time.stepWallClock(milliseconds: -5000)
    _ = await rig.put("knob", "k", ["n": 1])
    time.stepWallClock(milliseconds: 5000)
    _ = await rig.put("setting", "a", ["n": 2])
    rig.records.boot = "2"
    time.stepWallClock(milliseconds: -Self.now)
    try await rig.records.restart(isKill: true)
    rig.clockAhead = -Self.now
    for (offset, keepsLocal) in [(Int64(-1), true), (1, false)] {
      let update = DownOperation(3 + offset, "setting", "7", #"{"n":\#(offset)}"#, time: Self.now + offset)
      let outcome = try await rig.apply("setting", [update])
      #expect(outcome.clashes.first?.keptLocal == keepsLocal, "\(outcome)")
    }
  }

  @Test("a change here is sent by this clock, also of a record that came from a server with a later one")
  func clockBehind() async throws {
    var rig = try await Self.rig()
    rig.clockAhead = -600_000
    let update = DownOperation(2, "setting", "7", #"{"n":3}"#, time: Self.now + 599_000)
    _ = try await rig.apply("setting", [update])
    _ = await rig.put("setting", "a", ["n": 4])
    #expect(try await rig.upload().map(\.changedTime) == [Self.now], "the collector takes the clock's error off it")
  }

  @Test("the same change on both sides is no conflict, and nothing is sent") func same() async throws {
    let rig = try await Self.rig()
    _ = await rig.put("setting", "a", ["n": 2, "m": ["x": 1]])
    let update = DownOperation(2, "setting", "7", #"{"m":{"x":1},"n":2}"#, time: 1)
    #expect(try await rig.apply("setting", [update]).clashes.isEmpty)
    #expect(await rig.record("setting", "a")?.state == .clean)
    #expect(try await rig.upload().isEmpty)
  }

  @Test("a change here and a deletion there, and the other way round", arguments: [RecordConflict.local, .remote])
  func deletions(rule: RecordConflict) async throws {
    let rig = try await Self.rig(rule)
    _ = await rig.put("setting", "a", ["n": 2])
    let deletion = DownOperation(2, "setting", "7", nil, time: Self.now)
    #expect(try await rig.apply("setting", [deletion]).clashes.first?.remote == .some(nil))
    #expect(await rig.ids("setting") == (rule == .local ? ["a"] : []))
    #expect(try await rig.upload().map(\.kind) == (rule == .local ? [.insert] : []))

    let other = try await Self.rig(rule)
    await other.delete("setting", "a")
    let update = DownOperation(2, "setting", "7", #"{"n":3}"#, time: Self.now)
    #expect(try await other.apply("setting", [update]).clashes.first?.local == .some(nil))
    #expect(await other.ids("setting") == (rule == .local ? [] : ["a"]))
    #expect(try await other.upload().map(\.kind) == (rule == .local ? [.delete] : []))
    let ledger = await other.ledger("setting")
    #expect(ledger.isBalanced && ledger.stored == 1)
  }

  @Test("both sides delete a record: it is gone, and nothing is sent") func bothDelete() async throws {
    let rig = try await Self.rig()
    await rig.delete("setting", "a")
    #expect(try await rig.apply("setting", [DownOperation(2, "setting", "7", nil)]).clashes.isEmpty)
    #expect(try await rig.upload().isEmpty)
    #expect(await rig.ledger("setting")[.removed] == 1)
  }

  @Test("an operation on a record whose own change is in flight waits for its answer") func inFlight() async throws {
    let rig = try await Self.rig()
    _ = await rig.put("setting", "a", ["n": 2])
    let packet = try #require(try await rig.records.claim(tables: rig.tables))
    let operations = [
      DownOperation(2, "setting", "b", "{}", time: Self.now), DownOperation(3, "setting", "7", #"{"n":3}"#, time: 1),
    ]
    let waiting = try await rig.apply("setting", operations)
    #expect(waiting.end == .inFlight && waiting.executed == 1)
    #expect(await rig.after("setting") == 2)
    #expect(try await rig.take("setting", [], sequence: 9).end == .inFlight)
    try await rig.records.deliver(packet.id)
    // The server decided: its operation comes after this device's, or it would not have sent it.
    #expect(try await rig.apply("setting", [operations[1]]).clashes.isEmpty)
    #expect(await rig.fields("setting", "a") == #"{"n":3}"#)
  }

  @Test("an answer that was made before the server took an upload is not executed after it") func overtaken()
    async throws
  {
    var rig = try await Self.rig()
    rig.settled = await rig.store.records.settled(rig["setting"].name, in: Rig.shop)
    let operation = DownOperation(2, "setting", "7", #"{"n":3}"#, time: Self.now - 1)
    _ = await rig.put("setting", "a", ["n": 2])
    #expect(try await rig.upload().count == 1)
    #expect(try await rig.apply("setting", [operation]).end == .overtaken)
    #expect(try await rig.take("setting", [], sequence: 9).end == .overtaken)
    #expect(await rig.fields("setting", "a") == #"{"n":2}"#)
    #expect(await rig.after("setting") == 1)
    rig.settled = await rig.store.records.settled(rig["setting"].name, in: Rig.shop)
    #expect(try await rig.apply("setting", [operation]).end == .done)
  }

  @Test("a record that both sides made under one id is one record; another id keeps them apart") func oneID()
    async throws
  {
    let rig = try await Self.rig(.local)
    _ = await rig.put("setting", "volume", ["n": 1])
    _ = try await rig.apply("setting", [DownOperation(2, "setting", "volume", #"{"n":2}"#, time: Self.now)])
    #expect(try await rig.upload().map { "\($0.kind.name) \($0.serverID?.text ?? "-")" } == ["update volume"])
    _ = try await rig.apply("setting", [DownOperation(3, "setting", "a", #"{"n":9}"#, time: Self.now)])
    #expect(await rig.ids("setting") == ["a", "volume", "~a"])
    #expect(await rig.fields("setting", "~a") == #"{"n":9}"#)
    #expect(await rig.record("setting", "~a")?.serverID == RecordID("a"))
  }

  @Test("a whole table changes what differs, deletes what it does not have, and leaves what only this device changed")
  func wholeTable() async throws {
    let rig = try await DownRig(onConflict: .remote)
    let first = ["a", "b", "c", "d"].map { DownRecord("S" + $0, #"{"n":1}"#, local: $0, time: 5) }
    try await rig.take("setting", first, sequence: 1)
    _ = await rig.put("setting", "a", ["n": 2])
    _ = await rig.put("setting", "b", ["n": 2])
    _ = await rig.put("setting", "new", ["n": 2])
    let second = [
      DownRecord("Sa", #"{"n":1}"#, local: "a", time: 5), DownRecord("Sb", #"{"n":3}"#, local: "b", time: 6),
      DownRecord("Sc", #"{"n":1}"#, local: "c", time: 5), DownRecord("Se", #"{"n":3}"#, time: 6),
    ]
    let outcome = try await rig.take("setting", second, sequence: 9)
    #expect(outcome.clashes.map(\.id.text) == ["b"])
    #expect(await rig.ids("setting") == ["Se", "a", "b", "c", "new"])
    #expect(await rig.fields("setting", "a") == #"{"n":2}"#)
    #expect(await rig.fields("setting", "b") == #"{"n":3}"#)
    #expect(await rig.record("setting", "c")?.version == 1)
    #expect(try await rig.upload().map { "\($0.kind.name) \($0.id)" } == ["insert new", "update a"])
    // After the answer it is known what the server has: the next whole table is no conflict.
    _ = await rig.put("setting", "new", ["n": 4])
    let third = second.map { $0.id.text == "Sa" ? DownRecord("Sa", #"{"n":2}"#, local: "a", time: 7) : $0 }
    let all = third + [DownRecord("Snew", #"{"n":2}"#, local: "new", time: 7)]
    #expect(try await rig.take("setting", all, sequence: 12).clashes.isEmpty)
    #expect(await rig.fields("setting", "new") == #"{"n":4}"#)
    let ledger = await rig.ledger("setting")
    #expect(ledger.isBalanced && ledger[.waiting] == 1)
  }

  @Test(
    "a record that the whole table does not have is deleted; changed here it is made again, unless the server's wins")
  func missing() async throws {
    for rule in [RecordConflict.newest, .remote] {
      let rig = try await Self.rig(rule)
      _ = await rig.put("setting", "a", ["n": 2])
      #expect(try await rig.take("setting", [], sequence: 5).clashes.count == 1)
      #expect(await rig.ids("setting") == (rule == .newest ? ["a"] : []))
      #expect(try await rig.upload().map(\.kind) == (rule == .newest ? [.insert] : []))
    }
  }

  @Test("a deletion takes along what refers to it by either id, and the server learns of it") func cascade()
    async throws
  {
    let rig = try await Self.rig()
    for (knob, setting) in [("x", "a"), ("y", "7"), ("z", "other")] {
      if knob == "z" { _ = await rig.put("setting", "other", ["n": 1]) }
      _ = await rig.put("knob", knob, ["setting": .string(setting)])
    }
    _ = try await rig.upload()
    _ = await rig.put("knob", "fresh", ["setting": "a"])
    let deletion = DownOperation(2, "setting", "7", nil, time: Self.now)
    #expect(try await rig.apply("setting", [deletion]).changed.map(\.text).sorted() == ["knob", "setting"])
    #expect(await rig.ids("knob") == ["z"])
    #expect(try await rig.upload().map { "\($0.kind.name) \($0.id)" }.sorted() == ["delete x", "delete y"])
    let ledger = await rig.ledger("knob")
    #expect(ledger.isBalanced)
  }

  @Test("a change that the server refused gives way to the server's next one") func refused() async throws {
    let rig = try await Self.rig(.local)
    _ = await rig.put("setting", "a", ["n": 2])
    let packet = try #require(try await rig.records.claim(tables: rig.tables))
    try await rig.records.deliver(
      packet.id, RecordReceipt(refused: [.init(op: packet.operations[0].op, message: "no")]))
    _ = try await rig.apply("setting", [DownOperation(2, "setting", "7", #"{"n":3}"#, time: 1)])
    let record = try #require(await rig.record("setting", "a"))
    #expect(record.refusal == nil && record.state == .clean && record.fields == Array(#"{"n":3}"#.utf8))
    #expect(await rig.ledger("setting")[.dead] == 1)
  }

  @Test("an insert that the server takes for its own record of this id leaves one record here")
  func takenForOwn() async throws {
    let rig = try await Self.rig(.local)
    _ = await rig.put("setting", "a", ["n": 3])
    let insert = DownOperation(2, "setting", "a", #"{"n":2}"#, time: Self.now)
    let deletion = DownOperation(3, "setting", "7", nil, time: Self.now)
    _ = try await rig.apply("setting", [insert, deletion])
    #expect(await rig.ids("setting") == ["a", "~a"])
    let packet = try #require(try await rig.records.claim(tables: rig.tables))
    #expect(packet.operations.map(\.kind) == [.insert])
    var receipt = RecordReceipt()
    receipt.ids[rig["setting"].name] = [RecordID("a")!: RecordID("a")!]
    try await rig.records.deliver(packet.id, receipt)
    #expect(await rig.ids("setting") == ["a"])
    #expect(await rig.fields("setting", "a") == #"{"n":3}"#)
    #expect(await rig.ledger("setting").isBalanced)
  }
}
