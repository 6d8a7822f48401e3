import Foundation
import PrismProtocol
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

/// An older copy of the database in the place of a newer one, with the statements of docs/backup.md.
@Suite("Records of a restored collector") struct RecordRestoreTests {
  private static func statements() throws -> String {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..")
    let page = try String(contentsOf: root.appending(path: "docs/backup.md"), encoding: .utf8)
    let block = try #require(page.split(separator: "collector.db \"\n").dropFirst().first)
    return String(try #require(block.split(separator: "\"\n```").first))
  }

  @Test("after the leap devices get all records, and new numbers and ids are above all that were given")
  func leap() async throws {
    let rig = try await RecordRig(.sqlite)
    try await rig.change(RecordRig.put("a", 1))
    _ = try await rig.upload(RecordRig.operation(.insert, "x", 1))
    let path = rig.folder.path + "/collector.db"
    let connection = try SQLiteConnection(.init(path: path))
    try connection.execute("VACUUM INTO '\(rig.folder.path)/copy'")
    try await rig.change(RecordRig.put("a", 2))
    let lost = try await rig.upload(RecordRig.operation(.insert, "y", 1)).receipt.ids[RecordRig.part]
    try await rig.change(RecordRig.put("b", 2))
    await rig.store.close()
    for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) }
    try FileManager.default.moveItem(atPath: rig.folder.path + "/copy", toPath: path)
    try SQLiteConnection(.init(path: path)).execute(Self.statements())

    let store = try rig.folder.sqlite()
    func news(_ after: Int64?) async throws -> RecordNews {
      try await store.news(of: RecordRig.part, in: RecordRig.shop, for: "d", after: after)
    }
    // The device knew the number 3, of which the copy knows nothing.
    guard case .all(let place, let sequence) = try await news(3) else {
      Issue.record("a device of before the copy gets no whole table")
      return
    }
    #expect(place.device == "d" && sequence > 1_700_000_000_000)
    _ = try await store.change([RecordRig.put("c", 3)], of: rig.ofDevice, if: .always)
    guard case .operations(let operations, let newest) = try await news(sequence) else {
      Issue.record("a device that took the whole table gets it again")
      return
    }
    #expect(operations.map(\.id.text) == ["c"] && newest == sequence + 1)
    let packet = try RecordRig.packet([RecordRig.operation(.insert, "z", 1)])
    guard case .applied(let applied)? = try await store.take(packet, isLate: true) else { throw RecordRigFault() }
    let number = try #require(applied.receipt.ids[RecordRig.part]?[RecordID("z")!].flatMap { Int64($0.text) })
    let given = try #require(lost?[RecordID("y")!].flatMap { Int64($0.text) })
    #expect(number > given)

    // A namespace without a change of the server's: its whole tables are asked for once.
    let other = NamespaceName("other")!
    guard case .all(_, let base) = try await store.news(of: RecordRig.part, in: other, for: "d", after: 3) else {
      Issue.record("a device of before the copy gets no whole table of another namespace")
      return
    }
    let again = try await store.news(of: RecordRig.part, in: other, for: "d", after: base)
    #expect(again == .operations([], sequence: base))
    await store.close()
  }
}
