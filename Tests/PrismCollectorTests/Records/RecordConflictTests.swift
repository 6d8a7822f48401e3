import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// A record that the server and its device change holds the later change on both sides.
@Suite("Conflicts of records") struct RecordConflictTests {
  private static let later: Int64 = .max / 2

  /// A record `x` that the device made, and the server changed last.
  private static func changed(_ kind: StoreRig.Kind) async throws -> (rig: RecordRig, id: String) {
    let rig = try await RecordRig(kind)
    let ids = try await rig.upload(RecordRig.operation(.insert, "x", 1)).receipt.ids[RecordRig.part]
    let id = try #require(ids?[RecordID("x")!]).text
    try await rig.change(RecordRig.put("x", 2))
    return (rig, id)
  }

  private static func time(_ rig: RecordRig) async throws -> Int64 {
    try #require(try await rig.records.record(RecordID("x")!, of: rig.ofDevice)).changedTime
  }

  @Test("the later change holds, the server's on a tie, and the device learns it once more", arguments: RecordRig.kinds)
  func update(kind: StoreRig.Kind) async throws {
    let (rig, id) = try await Self.changed(kind)
    #expect(try await rig.operations(after: 0) == ["1 update \(id) x 2"])
    let tie = try await rig.upload(RecordRig.operation(.update, "x", 3, serverID: id, time: try await Self.time(rig)))
    #expect(tie.lost == 1 && tie.version == 2 && tie.receipt.ids[RecordRig.part]?[RecordID("x")!]?.text == id)
    #expect(try await rig.list() == ["x=\(id) 2"])
    #expect(try await rig.operations(after: 1) == ["2 update \(id) x 2"])
    let later = try await rig.upload(
      RecordRig.operation(.update, "x", 4, serverID: id, time: try await Self.time(rig) + 1))
    #expect(later.lost == 0)
    #expect(try await rig.list() == ["x=\(id) 4"])
    #expect(try await rig.operations(after: 0) == [], "the server's change is over")
    await rig.store.close()
  }

  @Test("a device's deletion loses against a later change, and takes an earlier one away", arguments: RecordRig.kinds)
  func deletion(kind: StoreRig.Kind) async throws {
    let (rig, id) = try await Self.changed(kind)
    #expect(try await rig.upload(RecordRig.operation(.delete, "x", serverID: id, time: 1)).lost == 1)
    #expect(try await rig.operations(after: 1) == ["2 insert \(id) x 2"], "the device has it no longer")
    #expect(try await rig.upload(RecordRig.operation(.delete, "x", serverID: id, time: Self.later)).lost == 0)
    #expect(try await rig.list().isEmpty)
    #expect(try await rig.operations(after: 0) == [])
    await rig.store.close()
  }

  @Test(
    "a device's change loses against a later deletion, and brings the record back with its id otherwise",
    arguments: RecordRig.kinds)
  func deleted(kind: StoreRig.Kind) async throws {
    let (rig, id) = try await Self.changed(kind)
    try await rig.change(RecordRig.delete(id))
    let lost = try await rig.upload(RecordRig.operation(.update, "x", 3, serverID: id, time: 1))
    #expect(lost.lost == 1 && lost.receipt.ids[RecordRig.part]?[RecordID("x")!]?.text == id)
    #expect(try await rig.list().isEmpty)
    #expect(try await rig.operations(after: 2) == ["3 delete \(id) x -1"])
    #expect(try await rig.upload(RecordRig.operation(.update, "x", 3, serverID: id, time: Self.later)).lost == 0)
    #expect(try await rig.list() == ["x=\(id) 3"])
    #expect(try await rig.operations(after: 0) == [])
    await rig.store.close()
  }

  @Test(
    "a change of a device that knew the server's holds, by any clock; a number that was never given says nothing",
    arguments: RecordRig.kinds)
  func known(kind: StoreRig.Kind) async throws {
    let (rig, id) = try await Self.changed(kind)
    func upload(
      _ kind: RecordOperation.Kind, _ n: Int = 0, _ serverID: String? = nil, after: Int64?
    ) async throws -> Int {
      var operation = RecordRig.operation(kind, "x", n, serverID: serverID, time: 1)
      operation.after = after
      return try await rig.upload(operation).lost
    }
    for unknown in [nil, 0, -1, 99, Int64.max] {
      #expect(try await upload(.update, 3, id, after: unknown) == 1, "\(String(describing: unknown))")
    }
    // Each of the five gave the server's change a new number.
    #expect(try await upload(.update, 3, id, after: 5) == 1)
    #expect(try await upload(.update, 3, id, after: 7) == 0)
    #expect(try await rig.list() == ["x=\(id) 3"])
    try await rig.change(RecordRig.put("x", 4))
    #expect(try await upload(.delete, 0, id, after: 7) == 1)
    #expect(try await upload(.delete, 0, id, after: 9) == 0)
    #expect(try await rig.list().isEmpty)
    #expect(try await upload(.insert, 5, after: 9) == 0)
    try await rig.change(RecordRig.delete("x"))
    #expect(try await upload(.insert, 6, after: 9) == 1)
    #expect(try await upload(.insert, 6, after: 11) == 0, "it was made again after the deletion came")
    #expect(try await rig.list().map { $0.suffix(2) } == [" 6"])
    #expect(try await rig.operations(after: 11) == [])
    await rig.store.close()
  }

  @Test("a record that the server made is the device's under the same id", arguments: RecordRig.kinds)
  func named(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    try await rig.change(RecordRig.put("s", 1))
    let applied = try await rig.upload(
      RecordRig.operation(.update, "local", 2, serverID: "s", time: Self.later),
      RecordRig.operation(.update, "s", 3, time: Self.later))
    #expect(
      applied.receipt.ids[RecordRig.part] == [RecordID("local")!: RecordID("s")!, RecordID("s")!: RecordID("s")!])
    #expect(try await rig.list() == ["s=s 3"])
    await rig.store.close()
  }

  @Test("a record that the server deleted and made again has the id that the device knows", arguments: RecordRig.kinds)
  func madeAgain(kind: StoreRig.Kind) async throws {
    let (rig, id) = try await Self.changed(kind)
    try await rig.change(RecordRig.delete("x"), RecordRig.put("x", 9))
    #expect(try await rig.operations(after: 1) == ["3 insert \(id) x 9"])
    await rig.store.close()
  }

  @Test("a device's time is corrected by the error of its clock")
  func clock() async throws {
    let (rig, id) = try await Self.changed(.sqlite)
    let now = try await Self.time(rig)
    // Its clock is an hour ahead: by it the change is later than the server's.
    let operation = RecordRig.operation(.update, "x", 3, serverID: id, time: now + 1_800_000)
    let packet = try RecordRig.packet([operation], clockAhead: 3_600_000)
    _ = try await rig.store.take(packet, isLate: true)
    #expect(try await rig.list() == ["x=\(id) 2"])
    await rig.store.close()
  }

  @Test("packets of one group have each their answer, a duplicate too", arguments: RecordRig.kinds)
  func group(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    let packets = try ["a", "b"].map { try RecordRig.packet([RecordRig.operation(.insert, $0)], device: $0) }
    let outcomes = try await rig.store.take((packets + [packets[0]]).map { PacketSubmission(packet: $0) })
    let applied = outcomes.compactMap { if case .applied(let applied) = $0 { applied } else { nil } }
    try #require(applied.count == 3)
    #expect(applied[2].wasDuplicate && applied[2].receipt == applied[0].receipt)
    #expect(applied[0].receipt.ids != applied[1].receipt.ids)
    await rig.store.close()
  }
}
