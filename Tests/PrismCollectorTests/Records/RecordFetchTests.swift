import Foundation
import PrismPacket
import PrismProtocol
import PrismSQLite
import Testing

@testable import PrismCollector

/// The server's newest change of a record, and what its device said that it has.
@Suite("Desired and reported records") struct RecordFetchTests {
  private static func operation(_ id: String, _ n: Int, after: Int64?, time: Int64 = 1) -> RecordOperation {
    var operation = RecordRig.operation(.update, id, n, time: time)
    operation.after = after
    return operation
  }

  @Test("a change of the server's is pending until the device says that it has it", arguments: RecordRig.kinds)
  func fetched(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    _ = try await rig.upload(RecordRig.operation(.insert, "x", 30))
    #expect(try await rig.fetch("x") == "", "the device changed it last")
    try await rig.change(RecordRig.put("x", 35))
    #expect(try await rig.fetch("x") == #"pending=true reported={"n":30}"#)
    guard case .stored(let record?, _)? = try await rig.change(RecordRig.put("x", 40)).first else {
      throw RecordRigFault()
    }
    #expect(String(decoding: record.fetchedText, as: UTF8.self).hasSuffix(#""pending":true,"reported":{"n":30}}"#))
    try await rig.change(RecordRig.put("y", 1))
    #expect(try await rig.fetch("y") == "pending=true", "the device has no such record")

    // The answer has them; the question after it says so.
    _ = try await rig.news(after: 0)
    #expect(try await rig.fetch("x") == #"pending=true reported={"n":30}"#)
    _ = try await rig.news(after: 2)
    let fetched = try await rig.fetch("x")
    #expect(fetched.hasPrefix("pending=false fetchedTime="))
    #expect(try await rig.fetch("y") == "pending=true")
    let tag = try await rig.records.record(RecordID("x")!, of: rig.ofDevice)?.tag
    #expect(tag == record.tag, "nothing of the record was changed")
    _ = try await rig.news(after: 99)
    #expect(try await rig.fetch("x") == "pending=true", "the number was never given: the device gets all records")

    _ = try await rig.news(after: 3)
    try await rig.change(RecordRig.put("x", 50))
    #expect(try await rig.fetch("x") == #"pending=true reported={"n":40}"#)
    #expect(try await rig.fetch("y").hasPrefix("pending=false"))
    _ = try await rig.news(after: nil)
    #expect(try await rig.fetch("y") == "pending=true", "the device lost its records")
    await rig.store.close()
  }

  @Test(
    "an operation says how far its device is, and one that is sent again takes nothing back", arguments: RecordRig.kinds
  )
  func operations(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    _ = try await rig.upload(RecordRig.operation(.insert, "x", 1), RecordRig.operation(.insert, "z", 1))
    try await rig.change(RecordRig.put("x", 2), RecordRig.put("y", 2))
    _ = try await rig.upload(Self.operation("z", 3, after: 1))
    #expect(try await rig.fetch("x").hasPrefix("pending=false"))
    #expect(try await rig.fetch("y") == "pending=true")
    _ = try await rig.upload(Self.operation("z", 4, after: 2))
    for after in [1, nil, 0, -1, 77] as [Int64?] {
      _ = try await rig.upload(Self.operation("z", 5, after: after))
      #expect(try await rig.fetch("y").hasPrefix("pending=false"), "after \(after ?? 0)")
    }
    // One that loses says what the device has, and learns the server's change.
    try await rig.change(RecordRig.put("x", 6))
    #expect(try await rig.upload(Self.operation("x", 7, after: 2)).lost == 1)
    #expect(try await rig.fetch("x") == #"pending=true reported={"n":7}"#)
    _ = try await rig.upload(Self.operation("x", 8, after: 4))
    #expect(try await rig.fetch("x") == "", "the device knew it, and changed it")
    await rig.store.close()
  }

  @Test("records of the fleet have no device that could have them", arguments: RecordRig.kinds)
  func ofFleet(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    try await rig.change(RecordRig.put("a", 1), fleet: true)
    for after in [nil, 0, 1] as [Int64?] {
      _ = try await rig.news(after: after)
      #expect(try await rig.fetch("a", fleet: true) == "")
    }
    await rig.store.close()
  }

  @Test("a deletion is pending until the device has it", arguments: RecordRig.kinds)
  func deletion(kind: StoreRig.Kind) async throws {
    let rig = try await RecordRig(kind)
    let ids = try await rig.upload(RecordRig.operation(.insert, "x", 1)).receipt.ids[RecordRig.part]
    let number = try #require(ids?[RecordID("x")!])
    try await rig.change(RecordRig.delete("x"))
    for (after, isPending) in [(0, true), (1, false)] as [(Int64, Bool)] {
      _ = try await rig.news(after: after)
      for id in [RecordID("x")!, number] {
        #expect(try await rig.records.isDeletionPending(id, of: rig.ofDevice) == isPending)
      }
      #expect(try await !rig.records.isDeletionPending(RecordID("y")!, of: rig.ofDevice))
    }
    await rig.store.close()
  }

  @Test("a store of 0.2.0 keeps its records, and hears what devices have", arguments: RecordRig.kinds)
  func migrated(kind: StoreRig.Kind) async throws {
    let (folder, database) = (StoreRig(), kind == .postgresql ? try await PostgreSQLRig() : nil)
    func open() throws -> RecordRig { try RecordRig(try database?.store() ?? folder.sqlite(), folder) }
    var rig = try open()
    try await rig.change(RecordRig.put("a", 1))
    await rig.store.close()
    if let database {
      _ = try await database.sql(PostgreSQLRig.firstVersion)
    } else {
      try SQLiteConnection(.init(path: folder.path + "/collector.db")).execute(
        StoreRig.packetsOfFirstVersion + "UPDATE facts SET value = 6 WHERE name = 'version'; PRAGMA user_version = 6")
    }
    for _ in 0..<2 {
      rig = try open()
      #expect(try await rig.list() == ["a=a 1"])
      #expect(try await rig.fetch("a").hasPrefix("pending="))
      _ = try await rig.news(after: 1)
      #expect(try await rig.fetch("a").hasPrefix("pending=false fetchedTime="))
      await rig.store.close()
    }
    #expect(!folder.logged.contains { $0.contains("damaged") })
  }
}
