import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The promises of any store to those who change records at the server, and to the devices that learn it.
@Suite("Records that the server changes") struct RecordChangeTests {
  @Test("a change is stored with its number, and one that changes nothing has no number", arguments: RecordRig.kinds)
  func numbers(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    guard case .stored(let made?, wasMade: true) = try await rig.change(RecordRig.put("a", 1), fleet: true).first else {
      throw RecordRigFault()
    }
    #expect(made.serverID == "a" && made.sequence == 1 && made.version == 1 && made.isNamed)
    guard case .stored(let same?, wasMade: false) = try await rig.change(RecordRig.put("a", 1), fleet: true).first
    else {
      throw RecordRigFault()
    }
    #expect(same == made)
    let patch = RecordChange(id: RecordID("a")!, action: .patch(["n": .null, "m": 2]))
    guard case .stored(let patched?, wasMade: false) = try await rig.change(patch, fleet: true).first else {
      throw RecordRigFault()
    }
    #expect(String(decoding: patched.fields, as: UTF8.self) == #"{"m":2}"#)
    #expect(patched.version == 2 && patched.sequence == 2 && patched.changedTime > made.changedTime)
    #expect(try await rig.change(RecordRig.delete("a"), RecordRig.delete("a"), fleet: true) == [.deleted, .absent])
    #expect(try await rig.list(rig.ofFleet).isEmpty)
    await rig.store.close()
  }

  @Test("a condition that does not hold changes nothing", arguments: RecordRig.kinds)
  func conditions(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    func refuses(_ condition: ChangeCondition, _ change: RecordChange) async {
      await #expect(throws: RecordFailure.refused(.condition, index: 0)) { try await rig.change(change, if: condition) }
    }
    await refuses(.matches(nil), RecordRig.put("a", 1))
    try await rig.change(RecordRig.put("a", 1), if: .isNew)
    await refuses(.isNew, RecordRig.put("a", 2))
    let tag = try #require(try await rig.records.record(RecordID("a")!, of: rig.ofDevice)).tag
    try await rig.change(RecordRig.put("a", 3), if: .matches(["\"x\"", tag]))
    await refuses(.matches([tag]), RecordRig.delete("a"))
    #expect(try await rig.list() == ["a=a 3"])
    await rig.store.close()
  }

  @Test("ids of digits are the collector's, and many changes are made as one or not at all", arguments: RecordRig.kinds)
  func numbersOfDevices(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    let given = try #require(try await rig.upload(RecordRig.operation(.insert, "x")).receipt.ids[RecordRig.part])
    let number = try #require(given[RecordID("x")!]).text
    try await rig.change(RecordRig.put(number, 5))
    #expect(try await rig.list() == ["x=\(number) 5"])
    await #expect(throws: RecordFailure.refused(.unknownNumber, index: 1)) {
      try await rig.change(RecordRig.put("b", 1), RecordRig.put("999", 1))
    }
    let large = RecordChange(
      id: RecordID("c")!, action: .put(["n": .string(String(repeating: "x", count: RecordRequest.fieldsBytesMax))]))
    await #expect(throws: RecordFailure.self) { try await rig.change(RecordRig.put("b", 1), large) }
    #expect(try await rig.list() == ["x=\(number) 5"])
    await rig.store.close()
  }

  @Test("a table is the fleet's or the devices'", arguments: RecordRig.kinds)
  func owners(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    try await rig.change(RecordRig.put("a", 1), fleet: true)
    await #expect(throws: RecordFailure.refused(.isOfFleet, index: 0)) { try await rig.change(RecordRig.put("a", 2)) }
    _ = try await rig.upload(RecordRig.operation(.insert, "x"))
    try await rig.change(RecordRig.put("a", 2), fleet: true)
    #expect(try await rig.operations(after: 1) == ["2 update a - 2"], "a device that sends there holds up no writer")
    let other = RecordPlace(namespace: RecordRig.shop, table: RecordTableName("other")!, device: "d")
    _ = try await rig.records.change([RecordRig.put("a", 1)], of: other, if: .always)
    var fleet = other
    fleet.device = nil
    await #expect(throws: RecordFailure.refused(.isOfDevices, index: 0)) {
      try await rig.records.change([RecordRig.put("a", 2)], of: fleet, if: .always)
    }
    await rig.store.close()
  }

  @Test("a device learns the changes behind the number that it knows", arguments: RecordRig.kinds)
  func learns(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    #expect(try await rig.news(after: nil) == .all(rig.ofDevice, sequence: 0))
    #expect(try await rig.news(after: 0) == .operations([], sequence: 0))
    #expect(try await rig.news(after: 7) == .all(rig.ofDevice, sequence: 0), "no such number was given")
    try await rig.change(RecordRig.put("a", 1), RecordRig.put("b", 1), RecordRig.put("a", 2))
    #expect(try await rig.operations(after: 0) == ["2 insert b - 1", "3 insert a - 2"])
    #expect(try await rig.operations(after: 2) == ["3 update a - 2"])
    try await rig.change(RecordRig.delete("b"))
    #expect(try await rig.operations(after: 3) == ["4 delete b - -1"])
    #expect(try await rig.operations(after: 4) == [])
    #expect(try await rig.operations(after: 4, device: "e") == [], "another device has nothing to learn")
    #expect(try await rig.news(after: 5) == .all(rig.ofDevice, sequence: 4))
    #expect(try await rig.all().map(\.text) == [#"{"full":true,"seq":4,"count":1}"#, "a - 2"])
    await rig.store.close()
  }

  @Test("a device learns that the store lacks its last packet", arguments: RecordRig.kinds)
  func lacksPacket(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    let packets = try ["a", "b"].map { try RecordRig.packet([RecordRig.operation(.insert, $0)]) }
    for packet in packets { _ = try await rig.store.take(packet, isLate: true) }
    let ids = packets.map(\.delivery.context.packetID)
    let unknown = try RecordRig.packet([RecordRig.operation(.insert, "c")]).delivery.context.packetID
    for (device, last, isBroken) in [
      ("d", ids[0], false), ("d", ids[1], false), ("d", nil, false), ("d", unknown, true), ("e", ids[0], true),
      ("e", nil, false),
    ] {
      let question = RecordRig.question(for: device, after: 0, lastPacket: last)
      #expect(try await rig.records.reply(to: question).isChainBroken == isBroken, "\(question)")
    }
    await rig.store.close()
  }

  @Test("every device learns the fleet's records", arguments: RecordRig.kinds)
  func fleet(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    try await rig.change(RecordRig.put("a", 1), fleet: true)
    #expect(try await rig.operations(after: 0, device: "e") == ["1 insert a - 1"])
    #expect(try await rig.news(after: nil, device: "e") == .all(rig.ofFleet, sequence: 1))
    #expect(try await rig.upload(RecordRig.operation(.insert, "x"), device: "e").version == 1)
    await rig.store.close()
  }

  @Test(
    "after more changes than an answer holds, and after deletions that are forgotten, all is sent",
    arguments: RecordRig.kinds)
  func full(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    let many = (0...RecordLog.operationsMax).map { RecordRig.put("r\($0)", $0) }
    _ = try await rig.records.change(many, of: rig.ofDevice, if: .always)
    #expect(try await rig.operations(after: 1)?.count == 1000)
    #expect(try await rig.operations(after: 0) == nil)
    _ = try await rig.records.change(many.map { RecordRig.delete($0.id.text) }, of: rig.ofDevice, if: .always)
    let (newest, made) = (Int64(2 * many.count), Int64(many.count))
    #expect(try await rig.operations(after: newest - 1000)?.count == 1000)
    // Made again, and changed by the device: few deletions are left, but the first one is forgotten.
    for id in ["r998", "r999", "r1000"] {
      try await rig.change(RecordRig.put(id, 1))
      _ = try await rig.upload(RecordRig.operation(.update, id, 2, time: .max / 2))
    }
    #expect(try await rig.operations(after: made) == nil)
    #expect(try await rig.operations(after: made + 1)?.count == 997)
    await rig.store.close()
  }
}

extension DownLine {
  var text: String {
    switch self {
    case .head(let head):
      String(decoding: DownHead(isFull: head.isFull, sequence: head.sequence, count: head.count).line, as: UTF8.self)
    case .operation(let operation): "\(operation.sequence)"
    case .record(let record):
      "\(record.id) \(record.localID?.text ?? "-") \((try? JSONValue(parsing: record.fields))?["n"]?.int ?? -1)"
    }
  }
}
