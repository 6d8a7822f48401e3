import CFaultVFS
import Foundation
import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

/// Databases of builds before the first published version are set aside and brought over, with any failure on the way.
extension StoreFaults {
  struct Migrations {
    private static let former = ["version-1", "version-2"]

    /// The rows that a database shows by the article's names, and its rows in flight and dead.
    private struct Content: Equatable {
      var rows: [String]
      var packets: [String]
      var dead: Int64

      init(_ connection: SQLiteConnection) throws {
        rows =
          try connection.firstText(
            """
            SELECT group_concat(line, char(10)) FROM (SELECT id || ' ' || namespace || ' ' || is_used || ' ' || meta AS line
            FROM v_meta UNION ALL SELECT id || ' payload ' || hex(payload) FROM v_payload ORDER BY 1)
            """)?.split(separator: "\n").map { String($0) } ?? []
        packets =
          try connection.firstText(
            "SELECT group_concat(line) FROM (SELECT hex(id) || members || header AS line FROM packets ORDER BY 1)"
          )
          .map { [$0] } ?? []
        dead = try connection.firstInt("SELECT count(*) FROM dead") ?? -1
      }
    }

    private static func build(_ folder: FaultFolder, _ version: String, vfs: String? = nil) throws -> Content {
      let path = try #require(Bundle.module.path(forResource: version, ofType: "sql", inDirectory: "Fixtures"))
      let connection = try SQLiteConnection(.init(path: folder.path + "/prism.db", vfs: vfs))
      try connection.execute(try String(contentsOfFile: path, encoding: .utf8))
      try connection.execute("PRAGMA journal_mode = WAL")
      return try Content(connection)
    }

    private static func expectWhole(_ folder: FaultFolder, _ before: Content, _ what: String) async throws {
      let store = try await folder.open()
      while try await store.maintain() {}
      let shop = try #require(NamespaceName("shop"))
      let ledger = try await store.status()[shop]?[.meta]?.ledger
      #expect(ledger?.stored == 42 && ledger?[.claimed] == 41 && ledger?[.waiting] == 1, "\(what)")
      for packet in try await store.inFlight(shop, .meta) {
        #expect(try await store.read(packet.id)?.itemCount == packet.itemCount, "\(what): a packet's rows")
      }
      await store.close()
      let connection = try SQLiteConnection(.init(path: folder.path + "/prism.db"))
      #expect(try Content(connection) == before, "\(what): the content")
      #expect(try connection.firstInt("PRAGMA user_version") == 12, "\(what): the version")
      #expect(try connection.firstText("PRAGMA integrity_check") == "ok", "\(what): the file")
    }

    @Test(
      "every row, packet and dead letter is brought over, and the dead letters can be sent again",
      arguments: former)
    func keepsAll(version: String) async throws {
      let folder = FaultFolder()
      let before = try Self.build(folder, version)
      #expect(before.rows.count == 44 && before.packets.count == 1 && before.dead == 3)
      try await Self.expectWhole(folder, before, version)
      let store = try await folder.open()
      #expect(try await store.requeue(.all(nil)) == 3)
      let dead = try #require(NamespaceName("dead"))
      #expect(try await store.status()[dead]?[.meta]?.ledger[.waiting] == 3)
      await store.close()
    }

    @Test("a report id that was stored before ids belonged to users is every user's, and a new one only its user's")
    func reportIDs() async throws {
      let folder = FaultFolder()
      _ = try Self.build(folder, "version-2")
      let store = try await folder.open()
      while try await store.maintain() {}
      let shop = try #require(NamespaceName("shop"))
      func stored(_ reportID: String, by userID: UInt32) async throws -> Int {
        let before = try await store.status()[shop]?[.meta]?.ledger.stored ?? 0
        _ = await store.append([Reports.batch(0..<1, in: shop, by: userID, reportID: reportID)])
        return (try await store.status()[shop]?[.meta]?.ledger.stored ?? 0) - before
      }
      #expect(try await stored("o-1", by: 7) == 0)
      #expect(try await stored("o-1", by: 8) == 0)
      #expect(try await stored("new", by: 7) == 1)
      #expect(try await stored("new", by: 8) == 1)
      #expect(try await stored("new", by: 7) == 0)
      await store.close()
    }

    @Test(
      "any I/O of the first start fails, or is its last: the next start finds all of it",
      arguments: EveryIOFails.cases)
    func everyCall(fault: EveryIOFails.Case) async throws {
      #expect(fvfs_register() == 0)
      let folder = FaultFolder()
      var call: Int64 = 1
      while true {
        folder.clear()
        let before = try Self.build(folder, Self.former.randomElement()!)
        fvfs_arm(fault.fault, call, fault.isForEver ? 1 : 0)
        // Its error does not matter here; only the state that the next start finds does.
        do { await (try folder.open(vfs: String(cString: fvfs_name))).close() } catch {}
        fvfs_heal()
        if fvfs_failures() == 0 { break }
        try await Self.expectWhole(folder, before, "\(fault.testDescription), call \(call)")
        call += soakFactor > 1 ? 1 : Int64.random(in: 1...6)
      }
      #expect(call > 3)
    }
  }
}
