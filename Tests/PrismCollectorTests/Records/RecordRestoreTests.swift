import Foundation
import PrismProtocol
import PrismSQL
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

/// A collector's database, and an older copy in its place.
private struct Restoring {
  let kind: StoreRig.Kind
  let folder = StoreRig()
  let database: PostgreSQLRig?

  init(_ kind: StoreRig.Kind) async throws {
    self.kind = kind
    database = kind == .postgresql ? try await PostgreSQLRig() : nil
  }

  func open() throws -> any PacketStore {
    if let database { return try database.store() }
    return try folder.sqlite()
  }

  /// On SQLite the store may be open.
  func copy() async throws {
    if let database {
      try await database.server.sql("CREATE DATABASE \(database.database)_copy TEMPLATE \(database.database)")
    } else {
      try FleetDatabase.folder(folder.path).prepare()
      try StoreBackup(state: folder.path).copy(to: folder.path + "/copy") { _ in }
    }
  }

  /// No store is open.
  func restore() async throws {
    if let database {
      let name = database.database
      for statement in ["DROP DATABASE \(name)", "ALTER DATABASE \(name)_copy RENAME TO \(name)"] {
        try await database.server.sql(statement)
      }
      try StoreBackup.leap(PostgreSQLTarget(uri: database.server.uri(name)))
    } else {
      try StoreBackup(state: folder.path).restore(from: folder.path + "/copy", now: 1) { _ in }
    }
  }
}

@Suite("Records of a restored collector") struct RecordRestoreTests {
  @Test(
    "after the leap devices get all records, and new numbers and ids are above all that were given",
    arguments: RecordRig.kinds)
  func leap(kind: StoreRig.Kind) async throws {
    let restoring = try await Restoring(kind)
    var rig = try RecordRig(restoring.open())
    try await rig.change(RecordRig.put("a", 1))
    _ = try await rig.upload(RecordRig.operation(.insert, "x", 1))
    await rig.store.close()
    try await restoring.copy()

    rig = try RecordRig(restoring.open())
    try await rig.change(RecordRig.put("a", 2))
    let lost = try await rig.upload(RecordRig.operation(.insert, "y", 1)).receipt.ids[RecordRig.part]
    try await rig.change(RecordRig.put("b", 2))
    await rig.store.close()
    try await restoring.restore()

    rig = try RecordRig(restoring.open())
    func news(_ after: Int64?, _ table: String = "part", of namespace: NamespaceName = RecordRig.shop) async throws
      -> RecordNews
    { try await rig.records.news(of: RecordTableName(table)!, in: namespace, for: "d", after: after) }
    // The device knew the number 3, of which the copy knows nothing.
    guard case .all(let place, let sequence) = try await news(3) else {
      Issue.record("a device of before the copy gets no whole table")
      return
    }
    #expect(place.device == "d" && sequence > 1_700_000_000_000)
    try await rig.change(RecordRig.put("c", 3))
    guard case .operations(let operations, let newest) = try await news(sequence) else {
      Issue.record("a device that took the whole table gets it again")
      return
    }
    #expect(operations.map(\.id.text) == ["c"] && newest == sequence + 1)
    let applied = try await rig.upload(RecordRig.operation(.insert, "z", 1))
    let number = try #require(applied.receipt.ids[RecordRig.part]?[RecordID("z")!].flatMap { Int64($0.text) })
    let given = try #require(lost?[RecordID("y")!].flatMap { Int64($0.text) })
    #expect(number > given)

    // A table and a namespace of which the copy knows nothing: all of them is asked for once.
    for (table, namespace) in [("lost", RecordRig.shop), ("part", NamespaceName("other")!)] {
      guard case .all(_, let base) = try await news(3, table, of: namespace) else {
        Issue.record("a device of before the copy gets no whole table of \(namespace) \(table)")
        continue
      }
      #expect(try await news(base, table, of: namespace) == .operations([], sequence: base))
    }
    // The first change in that namespace is above every number that a device may know.
    let other = RecordPlace(namespace: NamespaceName("other")!, table: RecordRig.part, device: "d")
    _ = try await rig.records.change([RecordRig.put("o", 1)], of: other, if: .always)
    guard case .operations(let first, _) = try await news(sequence, of: other.namespace) else {
      Issue.record("a device of the restored collector gets the whole table again")
      return
    }
    #expect(first.map(\.id.text) == ["o"] && first.map(\.sequence) == [sequence + 1])
    await rig.store.close()
  }
}
