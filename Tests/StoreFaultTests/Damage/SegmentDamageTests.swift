import Foundation
import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

/// Delivered rows stay in their tables for a while: no damage of one page brings them back.
extension StoreFaults {
  struct SegmentDamage {
    /// The tables that say which rows were delivered, and others.
    static let tables = ["ledger", "settled", "packets", "m1", "sqlite_schema"]

    @Test(
      "the only page of a table is destroyed: no delivered row comes again, and no other is lost", arguments: tables)
    func destroyed(table: String) async throws {
      let rig = DamagedStore()
      try await Self.fill(rig)
      let page = try Self.firstPage(of: table, rig)
      #expect(try Self.deliveredInFile(rig) > 0)
      let path = rig.folder.path + "/prism.db"
      var bytes = try Data(contentsOf: URL(filePath: path))
      // The file's own header stays.
      let start = (page - 1) * 4096 + (page == 1 ? 100 : 0)
      bytes.replaceSubrange(start..<page * 4096, with: Data(repeating: 0xA5, count: page * 4096 - start))
      try bytes.write(to: URL(filePath: path))
      let damaged = try await rig.open()
      let held = try await Damage.settled(rig, damaged).compactMap { $0 }
      #expect(rig.delivered.isDisjoint(with: held), "\(rig.delivered.intersection(held).count) come again")
      let lost = rig.stored.subtracting(rig.delivered).subtracting(held).count
      #expect(lost == 0 || table == "m1", "\(lost) lost: \(rig.log)")
      #expect(Set(held).count == held.count)
      await damaged.close()
    }

    private static func fill(_ rig: DamagedStore) async throws {
      let store = try await rig.open()
      for _ in 0..<6 { await rig.append(store, 12) }
      try await rig.deliver(store, 30)
      await rig.append(store, 12)
      try await rig.deliver(store, 7)
      // As a kill leaves it, but with the log copied: else the log would have the page, too.
      rig.folder.keepAsKilled()
      await store.close()
      rig.folder.restoreKilled()
      let connection = try SQLiteConnection(.init(path: rig.folder.path + "/prism.db"))
      try connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    }

    private static func firstPage(of table: String, _ rig: DamagedStore) throws -> Int {
      if table == "sqlite_schema" { return 1 }
      let connection = try SQLiteConnection(.init(path: rig.folder.path + "/prism.db", isReadOnly: true))
      return Int(try connection.firstInt("SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'") ?? 0)
    }

    private static func deliveredInFile(_ rig: DamagedStore) throws -> Int {
      let connection = try SQLiteConnection(.init(path: rig.folder.path + "/prism.db", isReadOnly: true))
      let sql = "SELECT sum(s.value) FROM ledger, json_each(segments) s WHERE s.key > 0 AND s.key % 5 = 4"
      return Int(try connection.firstInt(sql) ?? 0)
    }
  }
}
