import CFaultVFS
import Foundation
import Glibc
import PrismOutputs
import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The rigs of the daemon's store, run against the collector's: a packet that was answered is there once and whole.
extension StoreFaults {
  struct CollectorStore {
    struct Verdict {
      var lost = 0, doubled = 0, damaged = 0, forgotten = 0
      var isClean: Bool { lost + doubled + damaged + forgotten == 0 }
    }

    private static func verdict(_ store: SQLitePacketStore, _ known: PacketWorkload) async throws -> Verdict {
      let reports = try await PacketStoreFolder.reports(store)
      let numbers = reports.compactMap { $0.createdTime.map { Int($0) } }
      var verdict = Verdict()
      verdict.damaged = reports.count { !PacketWorkload.isWhole($0) }
      verdict.lost = known.acknowledged.subtracting(numbers).count
      verdict.doubled = numbers.count - Set(numbers).count
      for packet in known.known {
        let outcome = try await store.take([PacketSubmission(packet: packet, isLate: true)]).first
        if outcome != .duplicate { verdict.forgotten += 1 }
      }
      return verdict
    }

    private static func isSetAside(_ rig: PacketStoreFolder) -> Bool {
      rig.folder.names.contains { $0.hasPrefix("collector.db.damaged-") }
    }

    @Test("after a power loss at any point every answered packet is there once and whole, and known")
    func powerLoss() async throws {
      #expect(fvfs_register() == 0)
      var random = SeededRandom(seed: SeededRandom.announcedSeed("power loss of the collector"))
      let (recorded, rebuilt) = (PacketStoreFolder(), PacketStoreFolder())
      var points: [(point: Int64, known: PacketWorkload)] = []
      fvfs_record()
      do {
        let store = try recorded.open(vfs: String(cString: fvfs_name))
        var workload = PacketWorkload { points.append((fvfs_events(), $0)) }
        await workload.run(store, rounds: 40, using: &random)
        await store.close()
      }
      fvfs_record_end()
      let states = 150 * soakFactor
      let chosen = (0..<states).map { _ in Int64.random(in: 1...fvfs_events(), using: &random) }.sorted()
      for point in chosen {
        rebuilt.folder.clear()
        #expect(fvfs_rebuild(point, random.next(), rebuilt.folder.path) >= 0)
        let store = try rebuilt.open()
        let verdict = try await Self.verdict(store, points.last { $0.point <= point }?.known ?? PacketWorkload())
        #expect(verdict.isClean, "after event \(point): \(verdict)")
        let (taken, reports) = (try await PacketStoreFolder.taken(store), try await PacketStoreFolder.reports(store))
        let expected = [Int64](repeating: Int64(reports.count), count: 2)
        #expect(taken == expected, "after event \(point): a quota counts what is stored")
        #expect(!Self.isSetAside(rebuilt), "after event \(point): a sound database is set aside")
        await store.close()
      }
      print("power loss of the collector: \(states) states")
    }

    @Test(
      "whichever I/O fails: no answered packet is lost, doubled or forgotten, and work goes on",
      arguments: EveryIOFails.cases)
    func everyIO(fault: EveryIOFails.Case) async throws {
      #expect(fvfs_register() == 0)
      var random = SeededRandom(
        seed: SeededRandom.announcedSeed("failing I/O of the collector, \(fault.testDescription)"))
      var (call, rounds) = (Int64(1), 0)
      while true {
        let rig = PacketStoreFolder()
        var workload = PacketWorkload()
        fvfs_arm(fault.fault, call, fault.isForEver ? 1 : 0)
        if let store = try? rig.open(vfs: String(cString: fvfs_name)) {
          await workload.run(store, rounds: 6, using: &random)
          fvfs_heal()
          #expect(await workload.send(store, packets: 1, using: &random), "call \(call): the same store works on")
          #expect(workload.forgotten == 0)
          await store.close()
        }
        fvfs_heal()
        let isOver = fvfs_failures() == 0
        let again = try rig.open()
        let verdict = try await Self.verdict(again, workload)
        #expect(verdict.isClean, "\(fault.testDescription), call \(call): \(verdict)")
        #expect(!Self.isSetAside(rig), "\(fault.testDescription), call \(call): a sound database is set aside")
        await again.close()
        if isOver { break }
        // Syncs are few.
        let step: Int64 = fault.fault == FVFS_SYNC_FAILS ? 3 : 12
        call += soakFactor > 1 ? 1 : Int64.random(in: 1...step, using: &random)
        rounds += 1
      }
      print("failing I/O of the collector, \(fault.testDescription): \(rounds) rounds, up to call \(call)")
      #expect(rounds > 3)
    }

    @Test("a disk that is full at the start keeps no reader out, and packets come in once there is room")
    func fullAtStart() async throws {
      #expect(fvfs_register() == 0)
      var random = SeededRandom(seed: SeededRandom.announcedSeed("a full disk at the collector's start"))
      let rig = PacketStoreFolder()
      var workload = PacketWorkload()
      var store = try rig.open()
      await workload.run(store, rounds: 10, using: &random)
      try await Self.end(&store, rig, isKilled: true)
      fvfs_arm(FVFS_ENOSPC, 1, 1)
      defer { fvfs_heal() }
      store = try rig.open(vfs: String(cString: fvfs_name))
      var filter = ReportFilter(scope: .everything)
      filter.limit = 1000
      #expect(try await store.page(filter).count >= workload.acknowledged.count)
      #expect(await !workload.send(store, packets: 1, using: &random))
      fvfs_heal()
      #expect(await workload.send(store, packets: 1, using: &random))
      await store.close()
      store = try rig.open()
      #expect(try await Self.verdict(store, workload).isClean)
      await store.close()
    }

    enum Moment: CaseIterable { case stopped, killed, running }

    @Test(
      "bits flipped, pages overwritten, files cut or emptied: no senders are refused for ever, nothing false is shown")
    func damage() async throws {
      try await damage(
        seed: SeededRandom.announcedSeed("damage of the collector"), rounds: soakFactor > 1 ? 500 : 60)
    }

    /// With this seed the table led back, and the import read the same reports for ever.
    @Test("a table that leads back is read to its end", .timeLimit(.minutes(5)))
    func loop() async throws { try await damage(seed: 12_250_964_287_867_807_124, rounds: 12) }

    /// With this seed the names of senders were damaged in their index, and packets were stored twice.
    @Test("a sender who is not found in the index of names begins no new stream")
    func damagedName() async throws { try await damage(seed: 1_227_611_653_990_002_584, rounds: 16) }

    /// With this seed both copies of the names of senders were noise, and a packet was stored again and brought over.
    @Test("a packet that is stored again before its reports are brought over is there once", .timeLimit(.minutes(5)))
    func storedAgain() async throws { try await damage(seed: 7_153_644_491_867_130_336, rounds: 46) }

    @Test("without the names of senders a packet that is sent again is stored, and its earlier copy is left out")
    func lostNames() async throws {
      var random = SeededRandom(seed: SeededRandom.announcedSeed("lost names of senders of the collector"))
      let (rig, workload) = try await Self.filled(using: &random)
      let path = rig.folder.path + "/collector.db"
      for name in ["streams", "streams_name"] {
        let place = try Self.rootPage(of: name, path)
        FileDamage.zeroes(at: place, count: PacketSchema.pageBytes).apply(to: path, using: &random)
      }
      let store = try rig.open()
      let again = workload.known.enumerated().filter { $0.offset % 3 == 1 }.map(\.element)
      let outcomes = try await store.take(again.map { PacketSubmission(packet: $0, isLate: true) })
      #expect(!outcomes.contains(.duplicate), "no packet is known before the reports are brought over")
      let verdict = try await Self.verdictAfterDamage(store, workload)
      #expect(verdict.isClean && Self.isSetAside(rig), "\(verdict)")
      await store.close()
    }

    /// A store that was closed after a while.
    private static func filled(
      using random: inout SeededRandom
    ) async throws -> (rig: PacketStoreFolder, workload: PacketWorkload) {
      let rig = PacketStoreFolder()
      var workload = PacketWorkload()
      let store = try rig.open()
      await workload.run(store, rounds: 30, using: &random)
      await store.close()
      return (rig, workload)
    }

    /// The place in the file of the first page of a table or an index.
    private static func rootPage(of name: String, _ path: String) throws -> Int {
      let page = try SQLiteConnection(.init(path: path, isReadOnly: true))
        .firstInt("SELECT rootpage FROM sqlite_schema WHERE name = '\(name)'")
      return (Int(try #require(page)) - 1) * PacketSchema.pageBytes
    }

    private func damage(seed: UInt64, rounds: Int) async throws {
      var random = SeededRandom(seed: seed)
      var (lost, forgotten, setAside) = (0, 0, 0)
      for round in 0..<rounds {
        let rig = PacketStoreFolder()
        let moment = Moment.allCases[round % 3]
        var workload = PacketWorkload()
        var store = try rig.open()
        await workload.run(store, rounds: 30, using: &random)
        if moment != .running { try await Self.end(&store, rig, isKilled: moment == .killed) }
        let file = moment == .stopped || Bool.random(using: &random) ? "collector.db" : "collector.db-wal"
        let path = rig.folder.path + "/" + file
        let damage = FileDamage(size: FaultFolder.size(path), using: &random)
        damage.apply(to: path, using: &random)
        if moment != .running { store = try rig.open() }
        var isTaken = false
        for _ in 0..<4 where !isTaken { isTaken = await workload.send(store, packets: 1, using: &random) }
        #expect(isTaken, "round \(round), \(moment): \(file) \(damage): packets are taken")
        let verdict = try await Self.verdictAfterDamage(store, workload)
        let what = "round \(round), \(moment): \(file) \(damage): \(verdict)"
        #expect(verdict.doubled == 0, "\(what)")
        #expect(verdict.lost <= workload.acknowledged.count)
        if verdict.lost > 0 || verdict.forgotten > 0 { print("damage of the collector: \(what)") }
        lost += verdict.lost
        forgotten += verdict.forgotten
        setAside +=
          rig.folder.names.count { $0.hasPrefix("collector.db.damaged-") && !$0.hasSuffix("-wal") } > 0 ? 1 : 0
        await store.close()
      }
      print(
        "damage of the collector: \(rounds) rounds, \(setAside) set aside, \(lost) reports lost, \(forgotten) ids forgotten"
      )
      #expect(setAside > 0)
    }

    // The second seed flips a bit of a page for which the checksum blames a bit of the page's number.
    @Test(
      "one byte of the log is wrong: the commits behind it stay, and at most the reports of one page are lost",
      arguments: [UInt64?.none, 2_865_594_972_675_040_047])
    func damagedLog(seed: UInt64?) async throws {
      var random = SeededRandom(seed: seed ?? SeededRandom.announcedSeed("a damaged log of the collector"))
      for round in 0..<15 * soakFactor {
        let rig = PacketStoreFolder()
        var workload = PacketWorkload()
        var store = try rig.open()
        await workload.run(store, rounds: 30, using: &random)
        try await Self.end(&store, rig, isKilled: true)
        let path = rig.folder.path + "/collector.db-wal"
        // Behind it are commits for certain.
        let damage = FileDamage.flip(at: Int.random(in: 0..<FaultFolder.size(path) / 2, using: &random), bit: round % 8)
        damage.apply(to: path, using: &random)
        store = try rig.open()
        let verdict = try await Self.verdictAfterDamage(store, workload)
        let what = "round \(round): \(damage): \(verdict)"
        #expect(verdict.lost <= 60 && verdict.doubled == 0 && verdict.forgotten == 0, "\(what)")
        #expect(Self.isSetAside(rig), "\(what)")
        await store.close()
      }
    }

    @Test("an index damaged while the collector was stopped is found at the next start: no packet id is forgotten")
    func damagedIndex() async throws {
      var random = SeededRandom(seed: SeededRandom.announcedSeed("a damaged index of the collector"))
      let (rig, workload) = try await Self.filled(using: &random)
      let path = rig.folder.path + "/collector.db"
      let end = try Self.rootPage(of: "packets_name", path) + PacketSchema.pageBytes
      let file = try FileHandle(forUpdating: URL(filePath: path))
      try file.seek(toOffset: UInt64(end - 1024))
      try file.write(contentsOf: Data(count: 1024))
      try file.close()
      let store = try rig.open()
      let verdict = try await Self.verdictAfterDamage(store, workload)
      #expect(verdict.isClean && Self.isSetAside(rig), "\(verdict)")
      await store.close()
    }

    @Test("one bit of any copy of a packet id flipped while the collector was stopped: no packet is stored twice")
    func flippedID() async throws {
      var random = SeededRandom(seed: SeededRandom.announcedSeed("a flipped packet id of the collector"))
      let kept = PacketStoreFolder()
      var workload = PacketWorkload()
      let first = try kept.open()
      await workload.run(first, rounds: 30, using: &random)
      await first.close()
      let content = try Data(contentsOf: URL(filePath: kept.folder.path + "/collector.db"))
      let packet = try #require(workload.known.randomElement(using: &random))
      let id = Data(packet.delivery.context.packetID.bytes)
      var places: [Data.Index] = []
      while let next = content[(places.last.map { $0 + 1 } ?? 0)...].range(of: id) { places.append(next.lowerBound) }
      // In the table, in its index, and in each of its reports.
      #expect(places.count >= 2)
      for place in places {
        let rig = PacketStoreFolder()
        var damaged = content
        damaged[place + Int.random(in: 0..<16, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        try damaged.write(to: URL(filePath: rig.folder.path + "/collector.db"))
        let store = try rig.open()
        let verdict = try await Self.verdictAfterDamage(store, workload)
        #expect(verdict.doubled == 0 && verdict.forgotten == 0, "at \(place): \(verdict)")
        await store.close()
      }
    }

    @Test("a commit that failed, and a shorter one after it, leave nothing in the log that looks like damage")
    func failedCommit() async throws {
      #expect(fvfs_register() == 0)
      var random = SeededRandom(seed: SeededRandom.announcedSeed("a failed commit of the collector"))
      for _ in 0..<5 {
        let rig = PacketStoreFolder()
        var workload = PacketWorkload()
        var store = try rig.open(vfs: String(cString: fvfs_name))
        await workload.run(store, rounds: 3, using: &random)
        // With another reader SQLite does not read the log again when the store opens it again.
        var reader: SQLiteConnection? = try SQLiteConnection(
          .init(path: rig.folder.path + "/collector.db", isReadOnly: true))
        try reader?.execute("BEGIN; SELECT count(*) FROM blocks")
        fvfs_arm(FVFS_SYNC_FAILS, 1, 0)
        #expect(await !workload.send(store, packets: 40, using: &random))
        fvfs_heal()
        #expect(await workload.send(store, packets: 1, using: &random))
        withExtendedLifetime(reader) {}
        reader = nil
        try await Self.end(&store, rig, isKilled: true)
        store = try rig.open()
        #expect(!Self.isSetAside(rig))
        let verdict = try await Self.verdict(store, workload)
        #expect(verdict.isClean, "\(verdict)")
        await store.close()
      }
    }

    /// A damaged report is never shown as whole; a read that finds the damage may fail once.
    private static func verdictAfterDamage(
      _ store: SQLitePacketStore, _ known: PacketWorkload
    ) async throws -> Verdict {
      var verdict = Verdict()
      var reports: [StoredReport]?
      for _ in 0..<4 where reports == nil { reports = try? await PacketStoreFolder.reports(store) }
      let found = try #require(reports)
      for report in found where !report.isDamaged { #expect(PacketWorkload.isWhole(report)) }
      let numbers = found.filter { !$0.isDamaged }.compactMap { $0.createdTime.map { Int($0) } }
      verdict.lost = known.acknowledged.subtracting(numbers).count
      verdict.doubled = numbers.count - Set(numbers).count
      for packet in known.known {
        var outcome: PacketOutcome?
        for _ in 0..<3 where outcome == nil {
          outcome = try? await store.take([PacketSubmission(packet: packet, isLate: true)]).first
        }
        if outcome != .duplicate { verdict.forgotten += 1 }
      }
      return verdict
    }

    private static func end(
      _ store: inout SQLitePacketStore, _ rig: PacketStoreFolder, isKilled: Bool
    ) async throws {
      let names = ["collector.db", "collector.db-wal", "collector.run"]
      let (path, manager) = (rig.folder.path, FileManager.default)
      if isKilled {
        for name in names where manager.fileExists(atPath: "\(path)/\(name)") {
          try manager.copyItem(atPath: "\(path)/\(name)", toPath: "\(path)/kept-\(name)")
        }
      }
      await store.close()
      guard isKilled else { return }
      for name in names where manager.fileExists(atPath: "\(path)/kept-\(name)") {
        rename("\(path)/kept-\(name)", "\(path)/\(name)")
      }
    }

    @Test("an emptied file beside its log: what the log holds is brought over, and the start says what happened")
    func emptied() async throws {
      var random = SeededRandom(seed: SeededRandom.announcedSeed("an emptied database of the collector"))
      let rig = PacketStoreFolder()
      var store = try rig.open()
      var workload = PacketWorkload()
      // The file grows, so the log has the page that names its tables.
      await workload.run(store, rounds: 60, using: &random)
      try await Self.end(&store, rig, isKilled: true)
      truncate(rig.folder.path + "/collector.db", 0)
      store = try rig.open()
      let verdict = try await Self.verdict(store, workload)
      #expect(verdict.isClean, "\(verdict)")
      #expect(rig.folder.names.contains { $0.hasPrefix("collector.db.damaged-") })
      await store.close()
    }
  }
}
