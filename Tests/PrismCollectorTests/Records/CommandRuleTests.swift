import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The table of commands: a command is made as devices read it, and is never changed.
@Suite("Commands at the collector") struct CommandRuleTests {
  private static let now: Int64 = 1_700_000_000_000

  private static func check(
    _ changes: [RecordChange], table: RecordTableName = .command, device: String? = "d"
  ) -> Result<ChangeCondition, CollectorRefusal> {
    let place = RecordPlace(namespace: RecordRig.shop, table: table, device: device)
    do throws(CollectorRefusal) {
      return .success(try CommandRule(place, now: now).check(changes, .always))
    } catch { return .failure(error) }
  }

  private static func put(_ fields: String, _ id: String = "c1") throws -> RecordChange {
    RecordChange(id: RecordID(id)!, action: .put(try JSONValue(parsing: fields)))
  }

  @Test("a command is made only where no record is, and it may be deleted") func taken() throws {
    let command = try Self.put(#"{"name":"flush","args":{"a":1},"expires":1700000060000}"#)
    let deletion = RecordChange(id: RecordID("c2")!, action: .delete)
    #expect(
      try Self.check([command, try Self.put(#"{"name":"doctor","expires":1700000060000}"#, "c2")]).get() == .isNew)
    #expect(try Self.check([deletion]).get() == .always)
    #expect(try Self.check([try Self.put("{}")], table: RecordRig.part, device: nil).get() == .always)
    #expect(throws: CollectorRefusal.self) { try Self.check([command, deletion]).get() }
    #expect(throws: CollectorRefusal.self) { try Self.check([command], device: nil).get() }
    let patch = RecordChange(id: RecordID("c1")!, action: .patch(["expires": 1]))
    #expect(throws: CollectorRefusal.self) { try Self.check([patch]).get() }
  }

  @Test(
    "a record that no device reads as a command is refused with the cause",
    arguments: [
      (#"{"name":"reboot","expires":1700000060000}"#, "must be flush"),
      (#"{"name":"flush"}"#, "expires must be a time"),
      (#"{"name":"flush","expires":1702600000000}"#, "at most 30 days"),
      (#"{"name":"flush","expires":1700000060000,"args":{"a":[]}}"#, "a in args must be"),
      (#"{"name":"flush","expires":1700000060000,"signature":"AA"}"#, "base64 of 64 bytes"),
      (#"{"name":"flush","expires":1700000060000,"state":"done","stateTime":1}"#, "written by the device"),
      (#"{"name":"flush","expires":1700000060000,"priority":1}"#, "no member priority"),
    ])
  func refused(fields: String, message: String) throws {
    guard case .failure(let refusal) = Self.check([try Self.put(fields)]) else {
      Issue.record("it is taken: \(fields)")
      return
    }
    #expect(refusal.status == 422 && refusal.message.contains(message), "\(refusal.message)")
  }

  @Test("a command that is there is left as it is, and a device's answer is an update", arguments: RecordRig.kinds)
  func life(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    let place = RecordPlace(namespace: RecordRig.shop, table: .command, device: "d")
    let command = try Self.put(#"{"name":"flush","expires":1700000060000}"#)
    _ = try await rig.records.change([command], of: place, if: .isNew)
    await #expect(throws: RecordFailure.refused(.condition, index: 0)) {
      _ = try await rig.records.change([command], of: place, if: .isNew)
    }
    let answer: JSONValue = ["name": "flush", "expires": 1_700_000_060_000, "state": "done", "stateTime": 1]
    let update = RecordOperation(
      op: "o", table: .command, id: RecordID("c1")!, serverID: RecordID("c1"), kind: .update, fields: answer,
      version: 2,
      changedTime: 1, after: 1)
    #expect(try await rig.upload(update).lost == 0)
    let record = try #require(try await rig.records.record(RecordID("c1")!, of: place))
    #expect(CommandAnswer(fields: try JSONValue(parsing: record.fields))?.state == .done)
    await rig.store.close()
  }

  @Test("a command that did not change for 60 days is deleted, and its device learns that", arguments: RecordRig.kinds)
  func retention(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    // PostgreSQL has its own clock.
    let time = kind == .sqlite ? rig.folder.time : ManualTime(unixMilliseconds: SystemTime().unixMilliseconds)
    let (place, log) = (RecordPlace(namespace: RecordRig.shop, table: .command, device: "d"), rig.folder.log)
    let commands = try (1...700).map { try Self.put(#"{"name":"flush","expires":1700000060000}"#, "c\($0)") }
    _ = try await rig.records.change(commands, of: place, if: .isNew)
    try await rig.change(RecordRig.put("a", 1))
    let news = { (after: Int64) async throws -> (operations: [DownOperation], sequence: Int64) in
      let found = try await rig.records.news(of: .command, in: place.namespace, for: "d", after: after)
      guard case .operations(let operations, let sequence) = found else { throw RecordRigFault() }
      return (operations, sequence)
    }
    let known = try await news(1).sequence
    var retention = CommandRetention()
    time.move(days: 59)
    #expect(await !retention.delete(from: rig.records, time, log))
    #expect(try await rig.records.record(RecordID("c1")!, of: place) != nil, "it may still be asked for")
    time.stepWallClock(milliseconds: 400 * 86_400_000)
    time.move(days: 1)
    #expect(await !retention.delete(from: rig.records, time, log))
    #expect(try await rig.records.record(RecordID("c1")!, of: place) != nil, "a clock may be wrong at one look")
    time.stepWallClock(milliseconds: -400 * 86_400_000)
    time.move(days: 1)
    // In parts, between which packets are taken.
    #expect(await retention.delete(from: rig.records, time, log))
    #expect(await !retention.delete(from: rig.records, time, log))
    #expect(try await rig.records.commands(changedBefore: .max >> 12, limit: 1).isEmpty)
    let learned = try await news(known).operations
    #expect(learned.count == 700 && learned.allSatisfy { $0.kind == .delete })
    #expect(try await rig.list().count == 1, "records of other tables stay")
    await rig.store.close()
  }
}
