import Foundation
import Glibc
import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

/// Damaged files of the store: no damaged row is sent, whole rows are saved, lost rows are counted or reported, and the
/// store works on.
extension StoreFaults {
  struct Damage {
    private static let rounds = soakFactor > 1 ? 500 : 60

    enum Moment: String, CaseIterable { case cleanlyStopped, killed, running }

    struct Tally {
      var lost = 0, held = 0, setAside = 0
    }

    @Test("bits flipped, pages overwritten, files cut or replaced, between runs and under a running store")
    func damaged() async throws {
      let seed = SeededRandom.announcedSeed("damage")
      var random = SeededRandom(seed: seed)
      var tally = Tally()
      for round in 0..<Self.rounds {
        let moment = Moment.allCases[round % 3]
        try await Self.round(round, moment, using: &random, &tally)
      }
      print("damage: \(Self.rounds) rounds, \(tally.held) held, \(tally.lost) lost, \(tally.setAside) set aside")
    }

    @Test("the log's index, which is mapped into memory, overwritten under a running store")
    func index() async throws {
      var random = SeededRandom(seed: SeededRandom.announcedSeed("damage of the index"))
      var tally = Tally()
      for round in 0..<Self.rounds / 4 {
        let rig = DamagedStore()
        let store = try await rig.open()
        try await rig.fill(store)
        // A cut one is SIGBUS for every process that has it mapped: a kill, and those have a rig of their own.
        let start = Int.random(in: 0..<32 * 1024, using: &random)
        let damage = FileDamage.noise(at: start, count: Int.random(in: 1...(32 * 1024 - start), using: &random))
        damage.apply(to: rig.folder.path + "/prism.db-shm", using: &random)
        // SQLite copies the log by it, begins the log again, and copies it again.
        for _ in 0..<4 {
          await rig.append(store, 20)
          do { while try await store.maintain() {} } catch { continue }
          try? await rig.deliver(store, 15)
        }
        try await Self.expectHonest(rig, store, "round \(round), running: prism.db-shm \(damage)", damage, &tally)
      }
      print("damage of the index: \(tally.held) held, \(tally.lost) lost, \(tally.setAside) set aside")
    }

    /// Words of the schema, the table that has them, and the words that a flipped bit may make of them.
    static let schemaWords = [
      ("m1", "context", "contexu"), ("m1", "report_id", "repors_id"), ("m1", "flags", "fla's"), ("m1", "body", "bodx"),
      ("m1", "INTEGER PRIMARY", "INTEGEB PRIMARY"), ("m1", "TABLE m1", "TABLE m3"), ("packets", "members", "lembers"),
      ("packets", "TABLE packets", "TABLE pqckets"), ("ledger", "stored", "stosed"),
      ("types", "TABLE types", "TABLE typds"),
    ]

    @Test("a word of the schema that is another one: what is whole is saved", arguments: schemaWords, Moment.allCases)
    func schema(word: (table: String, was: String, becomes: String), moment: Moment) async throws {
      guard moment != .running else { return }  // it is in memory, and read no more
      let rig = DamagedStore()
      _ = try await Self.start(rig, moment)
      let path = rig.folder.path + "/prism.db"
      var changed = 0
      for path in [path, path + "-wal"] where FaultFolder.size(path) > 0 {
        var bytes = try Data(contentsOf: URL(filePath: path))
        changed += Self.change(word, in: &bytes)
        try bytes.write(to: URL(filePath: path))
      }
      try #require(changed > 0)
      var tally = Tally()
      let damage = FileDamage.noise(at: 0, count: 1)
      try await Self.expectHonest(rig, try await rig.open(), "\(word) after \(moment)", damage, &tally)
    }

    @Test("a dead letter whose row lost its namespace counts as corrupt, and is no longer counted as kept")
    func deadOfNoNamespace() async throws {
      let rig = DamagedStore()
      _ = try await Self.start(rig, .cleanlyStopped)
      try SQLiteConnection(.init(path: rig.folder.path + "/prism.db")).execute("UPDATE dead SET namespace = 77")
      var tally = Tally()
      try await Self.expectHonest(rig, try await rig.open(), "dead letters", .noise(at: 0, count: 1), &tally)
      #expect(tally.lost > 0 && tally.setAside == 1)
    }

    @Test("a row whose id was changed on the disk costs itself", arguments: [1024, 1 << 40])
    func changedID(by difference: Int) async throws {
      let rig = DamagedStore()
      _ = try await Self.start(rig, .cleanlyStopped)
      let connection = try SQLiteConnection(.init(path: rig.folder.path + "/prism.db"))
      var changed = 0
      let names = try connection.firstText("SELECT group_concat(name) FROM sqlite_schema WHERE name GLOB 'm[0-9]*'")
      for table in names?.split(separator: ",") ?? [] {
        try connection.execute("UPDATE \(table) SET id = id + \(difference) WHERE id = (SELECT max(id) FROM \(table))")
        changed += connection.changes
      }
      try #require(changed > 0)
      var tally = Tally()
      try await Self.expectHonest(rig, try await rig.open(), "ids", .noise(at: 0, count: 1), &tally)
      #expect(tally.lost <= changed)
    }

    @Test("a frame of the log that may have been any page's: that more may be lost than is counted is said")
    func unknownFrame() async throws {
      let rig = DamagedStore()
      _ = try await Self.start(rig, .killed)
      let path = rig.folder.path + "/prism.db-wal"
      var bytes = try Data(contentsOf: URL(filePath: path))
      let header = 32 + 24 + 4096  // of the second frame
      bytes.replaceSubrange(header..<header + 24, with: Data(repeating: 0xAA, count: 24))
      try bytes.write(to: URL(filePath: path))
      var tally = Tally()
      let store = try await rig.open()
      #expect(rig.log.contains { $0.contains("how many reports are lost with it is not known") })
      try await Self.expectHonest(rig, store, "a frame's header", .noise(at: header, count: 24), &tally)
    }

    /// In every copy of the table's text. - Returns: how many.
    private static func change(_ word: (table: String, was: String, becomes: String), in bytes: inout Data) -> Int {
      var (count, from) = (0, bytes.startIndex)
      while let table = bytes[from...].range(of: Data("CREATE TABLE \(word.table) (".utf8)) {
        from = table.upperBound
        let end = min(bytes.endIndex, table.lowerBound + 700)
        guard let place = bytes[table.lowerBound..<end].range(of: Data(word.was.utf8)) else { continue }
        bytes.replaceSubrange(place, with: Data(word.becomes.utf8))
        count += 1
      }
      return count
    }

    private static func round(
      _ round: Int, _ moment: Moment, using random: inout SeededRandom, _ tally: inout Tally
    ) async throws {
      let rig = DamagedStore()
      let running = try await start(rig, moment)
      let file = moment != .cleanlyStopped && Bool.random(using: &random) ? "prism.db-wal" : "prism.db"
      let path = rig.folder.path + "/" + file
      let damage = FileDamage(size: FaultFolder.size(path), using: &random)
      damage.apply(to: path, using: &random)
      let store = if let running { running } else { try await rig.open() }
      await store.markReady()?.value
      if moment == .running {
        for _ in 0..<5 {
          await rig.append(store, 20)
          // It may be what finds the damage.
          try? await rig.deliver(store, 15)
        }
      }
      try await expectHonest(rig, store, "round \(round), \(moment): \(file) \(damage)", damage, &tally)
    }

    /// - Returns: the store where it is to be damaged while it runs.
    private static func start(_ rig: DamagedStore, _ moment: Moment) async throws -> ReportStore? {
      let store = try await rig.open()
      try await rig.fill(store)
      switch moment {
      case .running: return store
      case .cleanlyStopped: await store.close()
      case .killed:
        rig.folder.keepAsKilled()
        await store.close()
        rig.folder.restoreKilled()
      }
      return nil
    }

    private static func expectHonest(
      _ rig: DamagedStore, _ store: ReportStore, _ what: String, _ damage: FileDamage, _ tally: inout Tally
    ) async throws {
      var isTaken = false
      for _ in 0..<3 where !isTaken { isTaken = await rig.append(store, 5) }
      #expect(isTaken, "\(what): reports are taken again: \(rig.log.suffix(3))")
      let held = try await settled(rig, store)
      #expect(!held.contains(nil), "\(what): a damaged row would be sent")
      let numbers = held.compactMap { $0 }
      #expect(Set(numbers).count == numbers.count, "\(what): doubled")
      // A log that was cut takes back the commits that were in it.
      if damage.isSmall && what.hasSuffix("flipped") && !what.contains("-wal") {
        #expect(rig.delivered.isDisjoint(with: numbers), "\(what): delivered ones come again")
      }
      #expect(try await store.isBalanced(), "\(what): the ledger")
      let lost = rig.stored.subtracting(rig.delivered).subtracting(numbers).count
      let counted = try await rig.corruptCount(store)
      let isSaid = rig.log.contains { line in
        ["is not known", "not a database", "not whole", "was cut"].contains { line.contains($0) }
      }
      // A log that ends with a whole frame looks like one that never went on.
      let isUntold = damage.isCut && what.contains("-wal")
      #expect(lost <= counted || isSaid || isUntold, "\(what): \(lost) lost, \(counted) counted: \(rig.log)")
      if lost > 30 { print("\(what): \(lost) lost, \(counted) counted: \(rig.log)") }
      (tally.lost, tally.held) = (tally.lost + lost, tally.held + numbers.count)
      tally.setAside += store.health.setAside
      await store.close()
      // Damage that nothing met stays where it is. A new file has no damage.
      guard store.health.setAside > 0 else { return }
      let connection = try SQLiteConnection(.init(path: rig.folder.path + "/prism.db"))
      #expect(try connection.firstText("PRAGMA integrity_check") == "ok", "\(what): the file")
    }

    /// The rows that it holds once everything is brought over; finding damage may take it another try.
    static func settled(_ rig: DamagedStore, _ store: ReportStore) async throws -> [Int?] {
      for _ in 0..<5 {
        do {
          while try await store.maintain() {}
          return try await rig.held(store)
        } catch is StoreError { continue }
      }
      while try await store.maintain() {}
      return try await rig.held(store)
    }
  }
}
