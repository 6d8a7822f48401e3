import Foundation
import PrismBase
import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("A store is carried to PostgreSQL") struct MigrationTests {
  /// A state folder with everything in it, whose collector is stopped. - Returns: the packet of operations that it took last.
  private static func fill(_ folder: StoreRig) async throws -> (mark: StoreMark, last: OpenedPacket) {
    let store = try folder.sqlite()
    let rig = try RecordRig(store, folder)
    let first = try StoreRig.packet([1, 2])
    for packet in [first, try StoreRig.packet([3], payload: [1, 2, 255], after: nil)] {
      _ = try await store.take(packet)
    }
    _ = try await store.take(StoreRig.packet([4], after: first.id))
    let last = try RecordRig.packet([RecordRig.operation(.insert, "mine", 1), RecordRig.operation(.insert, "x", 2)])
    _ = try await store.take(last)
    try await rig.change(RecordRig.put("a", 1), RecordRig.put("b", 2))
    try await rig.change(RecordRig.delete("b"))
    let kafka = store.outputSource("kafka")
    try await kafka.note(cursor: 2, refused: [RefusedReport(id: 1, cause: "too large")])
    _ = try await kafka.change(dead: 1...1, .requeue)
    let mark = try #require(store.figures.mark)
    await store.close()
    let devices = DeviceStore(.folder(folder.path))
    try await devices.setRevoked("lost", at: 1_700_000_000_000)
    try await devices.add(
      EnrollmentToken(hash: "h", keyID: "main", devicesMax: 3, expireTime: 1_800_000_000_000, device: nil))
    try await DictionaryStore(.folder(folder.path)).keep(try Self.dictionary, of: .prism)
    _ = try await Self.configuration(folder, .folder(folder.path)).change(
      .start(Rollout.Reach(percent: 100)), by: "operator")
    return (mark, last)
  }

  private static var dictionary: KeptDictionary {
    get throws {
      let samples = (0..<200).map { Array(#"{"id":\#($0),"state":"open","total":\#($0 * 7)}"#.utf8) }
      let trained = try #require(CompressionDictionary.trained(from: samples, bytesMax: 1024))
      return KeptDictionary(dictionary: trained, madeTime: 1000)
    }
  }

  private static func configuration(
    _ rig: StoreRig, _ database: FleetDatabase
  ) throws -> RemoteConfigurationStore {
    let folder = rig.path + "/remote.d"
    try FileManager.default.createDirectory(atPath: folder + "/next", withIntermediateDirectories: true)
    try "maxItem: 5".write(toFile: folder + "/shop.yaml", atomically: true, encoding: .utf8)
    try "maxItem: 6".write(toFile: folder + "/next/shop.yaml", atomically: true, encoding: .utf8)
    return try RemoteConfigurationStore(
      try #require(CollectorOptions.Remote(folder: folder)), state: rig.path, in: database, time: rig.time,
      log: rig.log)
  }

  @Test("streams, ids, records, devices, outputs and reports go, the identity with them, and once more is nothing")
  func carries() async throws {
    let (folder, rig) = (StoreRig(), try await PostgreSQLRig())
    let (mark, last) = try await Self.fill(folder)
    let target = try PostgreSQLTarget(uri: rig.server.uri(rig.database))
    let lines = LogLines()
    try StoreMigration(from: folder.path, to: target).run { lines.add($0) }
    #expect(lines.all.contains("records: 3, 3 of them new") && lines.all.contains("blocks: 3, 3 of them new"))
    let store = try rig.store()
    let records = try RecordRig(store)
    #expect(
      try await store.take(last) == .applied(RecordApplied(receipt: Self.receipt, wasDuplicate: true, version: 3)))
    #expect(store.figures.mark == mark)
    #expect(try await records.list() == ["a=a 1", "mine=1 1", "x=2 2"])
    #expect(try await records.operations(after: 0) == ["1 insert a - 1", "3 delete b - -1"])
    #expect(try await records.operations(after: 2) == ["3 delete b - -1"])
    #expect(try await store.numbers() == [1, 2, 3, 4])
    #expect(try await store.report(3, .everything)?.payload == [1, 2, 255])
    let known = PacketID(try #require(await store.report(4, .everything)).packetID)
    #expect(try await store.take(StoreRig.packet([5], after: known)) == .stored(chainIsBroken: false))
    #expect(try await store.numbers() == [1, 2, 3, 4, 5])
    #expect(try await rig.value("SELECT cursor FROM outputs WHERE output = 'kafka'") == "2")
    let dead = try await store.outputSource("kafka").dead(after: 0, limit: 9, onlyRequeued: true)
    #expect(dead.map(\.cause) == ["too large"])
    let devices = DeviceStore(.server(target))
    #expect(try await devices.device("lost")?.revokedTime == 1_700_000_000_000)
    #expect(try await devices.tokens().map(\.keyID) == ["main"])
    #expect(try await DictionaryStore(.server(target)).newest(of: .prism) == Self.dictionary)
    let (before, after) = (
      try Self.configuration(folder, .folder(folder.path)), try Self.configuration(folder, .server(target))
    )
    #expect(try await after.answer(to: "d", since: nil).body == before.answer(to: "d", since: nil).body)
    #expect(await after.rollouts.active == before.rollouts.active)
    #expect(await after.rollouts.active?.event.reach.percent == 100)
    try StoreMigration(from: folder.path, to: target).run { lines.add($0) }
    #expect(lines.all.last == "the store \(mark) is carried already: nothing was done")
    await store.close()
  }

  private static let receipt = RecordReceipt(ids: [
    RecordRig.part: [RecordID("mine")!: RecordID("1")!, RecordID("x")!: RecordID("2")!]
  ])

  @Test("a database goes to another one, and an interrupted run is run again") func databases() async throws {
    let (folder, first, second) = (StoreRig(), try await PostgreSQLRig(), try await PostgreSQLRig())
    let mark = try await Self.fill(folder).mark
    let targets = try [first, second].map { try PostgreSQLTarget(uri: $0.server.uri($0.database)) }
    try StoreMigration(from: folder.path, to: targets[0]).run { _ in }
    let uri = first.server.uri(first.database)
    try StoreMigration(from: uri, to: targets[1]).run { _ in }
    // As it was left by a run that ended within the last table.
    _ = try await second.sql(
      "UPDATE store_mark SET id = 7; DELETE FROM blocks WHERE id > 2; DELETE FROM records WHERE id = 'a'")
    let lines = LogLines()
    try StoreMigration(from: uri, to: targets[1]).run { lines.add($0) }
    #expect(lines.all.contains("records: 3, 3 of them new") && lines.all.contains("blocks: 2, 2 of them new"))
    let store = try second.store()
    #expect(try await store.numbers() == [1, 2, 3, 4])
    #expect(try await RecordRig(store).list() == ["a=a 1", "mine=1 1", "x=2 2"])
    #expect(try await second.value("SELECT id FROM store_mark") == "\(mark.id)")
    await store.close()
  }

  @Test("no collector starts with a database into which a store is not carried whole, and one that runs takes nothing")
  func halfCarried() async throws {
    let (folder, rig) = (StoreRig(), try await PostgreSQLRig())
    let mark = try await Self.fill(folder).mark
    let target = try PostgreSQLTarget(uri: rig.server.uri(rig.database))
    let store = try rig.store { $0.commitDeadline = .seconds(1) }
    let migration = try StoreMigration(from: folder.path, to: target)
    _ = try await rig.sql("ALTER TABLE record_answers RENAME TO away")
    #expect(throws: PostgreSQLError.self) { try migration.run { _ in } }
    _ = try await rig.sql("ALTER TABLE away RENAME TO record_answers")
    await #expect(throws: StoreFailure.self) { try await store.take(StoreRig.packet([9], device: "other")) }
    await store.close()
    #expect(throws: PostgreSQLSetup.Refusal.noIdentity) { try rig.store() }
    #expect(throws: PostgreSQLSetup.Refusal.noIdentity) { try StoreBackup.leap(target) }
    try migration.run { _ in }
    let carried = try rig.store()
    #expect(try await rig.value("SELECT id FROM store_mark") == "\(mark.id)")
    #expect(try await carried.numbers() == [1, 2, 3, 4])
    await carried.close()
  }

  @Test("reports of blocks that have a midnight within keep their payloads") func midnight() async throws {
    let (folder, rig) = (StoreRig(), try await PostgreSQLRig())
    let source = try folder.sqlite()
    for round in 0..<60 {
      if round == 30 { folder.time.advance(by: .seconds(7200)) }
      _ = try await source.take(StoreRig.packet([round], payload: [UInt8](repeating: UInt8(round), count: 2000)))
    }
    _ = try await source.take(StoreRig.packet(Array(100..<9100)))
    while try await source.maintain() {}
    let sent = try await source.reports()
    #expect(Set(sent.map { $0.receivedTime / 86_400_000 }).count == 2)
    await source.close()
    try StoreMigration(from: folder.path, to: PostgreSQLTarget(uri: rig.server.uri(rig.database))).run { _ in }
    let store = try rig.store()
    #expect(try await store.reports() == sent)
    await store.close()
  }

  @Test("a source that was used after an interrupted run is carried as it is now") func usedBetween() async throws {
    let (folder, rig) = (StoreRig(), try await PostgreSQLRig())
    _ = try await Self.fill(folder)
    let target = try PostgreSQLTarget(uri: rig.server.uri(rig.database))
    try StoreMigration(from: folder.path, to: target).run { _ in }
    // As it was left by a run that ended before its last step.
    _ = try await rig.sql("UPDATE store_mark SET id = 7")
    try FileManager.default.removeItem(atPath: folder.path + "/carried")
    let source = try folder.sqlite()
    let records = try RecordRig(source, folder)
    try await records.change(RecordRig.put("a", 7), RecordRig.delete("x"))
    for number in 10..<60 { _ = try await source.take(StoreRig.packet([number], device: "e")) }
    _ = try await source.take(StoreRig.packet(Array(100..<9100), device: "e"))
    while try await source.maintain() {}
    let (numbers, list) = (try await source.numbers(), try await records.list())
    await source.close()
    try StoreMigration(from: folder.path, to: target).run { _ in }
    let store = try rig.store()
    #expect(try await store.numbers() == numbers)
    #expect(try await RecordRig(store).list() == list)
    await store.close()
  }

  @Test(
    "a folder that was carried starts no collector; used again all the same, it is carried to an empty database only")
  func carried() async throws {
    let (folder, rig) = (StoreRig(), try await PostgreSQLRig())
    _ = try await Self.fill(folder)
    let target = try PostgreSQLTarget(uri: rig.server.uri(rig.database))
    try StoreMigration(from: folder.path, to: target).run { _ in }
    let refusal = #expect(throws: StoreFailure.self) { _ = try folder.sqlite() }
    #expect(refusal?.description.contains("delete the file `carried`") == true)
    try FileManager.default.removeItem(atPath: folder.path + "/carried")
    let store = try folder.sqlite()
    await store.close()
    let fault = #expect(throws: StoreMigration.Fault.self) {
      try StoreMigration(from: folder.path, to: target).run { _ in }
    }
    #expect(fault?.description.contains("may have been used since") == true)
  }

  @Test("a database with data of another store is refused, and so is a folder in use") func refuses() async throws {
    let (folder, rig) = (StoreRig(), try await PostgreSQLRig())
    _ = try await Self.fill(folder)
    let target = try PostgreSQLTarget(uri: rig.server.uri(rig.database))
    let store = try rig.store()
    _ = try await store.take(StoreRig.packet([1], device: "other"))
    await store.close()
    let fault = #expect(throws: StoreMigration.Fault.self) {
      try StoreMigration(from: folder.path, to: target).run { _ in }
    }
    #expect(fault?.description.contains("give an empty database") == true)
    #expect(try await rig.value("SELECT count(*) FROM records") == "0")
    let running = try folder.sqlite()
    #expect(throws: StoreMigration.Fault.self) { try StoreMigration(from: folder.path, to: target) }
    await running.close()
  }
}
