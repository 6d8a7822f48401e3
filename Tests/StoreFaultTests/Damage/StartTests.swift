import Glibc
import PrismBase
import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

/// How the store starts after what happened before.
extension StoreFaults {
  struct Starts {
    private func die(_ rig: DamagedStore, times: Int) {
      let boot =
        FaultFolder.read("/proc/sys/kernel/random/boot_id").split(separator: "\n").first.map { String($0) } ?? ""
      let now = SystemTime().unixMilliseconds
      let lines = ["boot \(boot)"] + (0..<times).map { "start \(now - Int64($0) * 1000)" }
      FaultFolder.write(lines.joined(separator: "\n") + "\n", to: rig.folder.path + "/prism.run")
    }

    @Test("three deaths before it was ready set the database aside, loudly, and nothing is lost", arguments: [2, 3])
    func deathLoop(deaths: Int) async throws {
      let rig = DamagedStore()
      do {
        let store = try await rig.open()
        try await rig.fill(store)
        await store.close()
      }
      die(rig, times: deaths)
      let store = try await rig.open()
      #expect(store.health.setAside == (deaths < 3 ? 0 : 1))
      #expect(rig.log.contains { $0.contains("died before they were ready") } == (deaths >= 3))
      while try await store.maintain() {}
      let held = try await rig.held(store)
      #expect(Set(held.compactMap { $0 }) == rig.stored.subtracting(rig.delivered) && !held.contains(nil))
      await store.close()
    }

    @Test(
      "a database that was emptied or deleted beside its log, which SQLite would throw away, is set aside with its log, loudly",
      arguments: [false, true])
    func emptiedBesideItsLog(isDeleted: Bool) async throws {
      let rig = DamagedStore()
      do {
        let store = try await rig.open()
        try await rig.fill(store)
        rig.folder.keepAsKilled()
        await store.close()
        rig.folder.restoreKilled()
      }
      let path = rig.folder.path + "/prism.db"
      try #require(isDeleted ? unlink(path) == 0 : truncate(path, 0) == 0)
      let store = try await rig.open()
      #expect(store.health.setAside == 1)
      while try await store.maintain() {}
      let held = try await rig.held(store)
      let lost = rig.stored.subtracting(rig.delivered).subtracting(held.compactMap { $0 }).count
      #expect(try await rig.corruptCount(store) >= lost && !held.contains(nil))
      await store.close()
    }

    @Test("a bit in the head that lets SQLite only read the file is damage: it is set aside, and nothing is lost")
    func readOnlyHead() async throws {
      let rig = DamagedStore()
      do {
        let store = try await rig.open()
        try await rig.fill(store)
        await store.close()
      }
      var random = SeededRandom(seed: 1)
      FileDamage.flip(at: 18, bit: 3).apply(to: rig.folder.path + "/prism.db", using: &random)
      let store = try await rig.open()
      for _ in 0..<2 { _ = await rig.append(store, 3) }
      while try await store.maintain() {}
      #expect(store.health.setAside == 1)
      let held = try await rig.held(store)
      #expect(Set(held.compactMap { $0 }) == rig.stored.subtracting(rig.delivered) && !held.contains(nil))
      #expect(await rig.append(store, 1))
      await store.close()
    }

    @Test(
      "if the start without it dies, too, the database is put back, with a kill at each point of that start",
      arguments: 1...4)
    func putBack(step: Int) async throws {
      let rig = DamagedStore()
      do {
        let store = try await rig.open()
        try await rig.fill(store)
        await store.close()
      }
      die(rig, times: 3)
      let point = KillPoint(rig.folder, step: step)
      _ = try await rig.open { point.take() }
      try #require(point.isReached)
      rig.folder.clear()
      point.remains.copy(to: rig.folder)
      let store = try await rig.open()
      while try await store.maintain() {}
      let held = try await rig.held(store)
      #expect(Set(held.compactMap { $0 }) == rig.stored.subtracting(rig.delivered) && !held.contains(nil))
      #expect(store.health.leftBehind == [])
      await store.close()
    }

    @Test("deaths that go on leave the database behind: its reports count as corrupt, and it is named and kept")
    func leftBehind() async throws {
      let rig = DamagedStore()
      do {
        let store = try await rig.open()
        try await rig.fill(store)
        await store.close()
      }
      die(rig, times: 11)
      let left = try await liveWithout(rig)
      for round in 0..<4 {
        FaultFolder.write("not a database \(round)", to: rig.folder.path + "/prism.db")
        _ = try await rig.open()
      }
      #expect(rig.folder.names.contains(left))
    }

    /// - Returns: the file that is left behind.
    private func liveWithout(_ rig: DamagedStore) async throws -> String {
      let store = try await rig.open()
      let left = try #require(store.health.leftBehind.first)
      #expect(rig.folder.names.contains(left))
      #expect(try await rig.corruptCount(store) == rig.stored.subtracting(rig.delivered).count)
      #expect(try await rig.held(store).isEmpty)
      #expect(await rig.append(store, 3))
      #expect(try await store.isBalanced())
      #expect(rig.log.contains { $0.contains(left) && $0.contains("not brought over") })
      await store.close()
      return left
    }

    @Test("a start that ends by itself is no death, and a clean stop leaves no mark")
    func orderlyEnds() async throws {
      let rig = DamagedStore()
      for _ in 0..<5 { _ = try await rig.open() }
      let store = try await rig.open()
      #expect(store.health.setAside == 0)
      await store.markReady()
      await store.close()
      #expect(!rig.folder.names.contains("prism.run"))
    }

    @Test("a kill at any point of setting aside and bringing over loses nothing", arguments: 0..<6)
    func killedWhileSalvaging(steps: Int) async throws {
      let rig = DamagedStore()
      do {
        let store = try await rig.open()
        try await rig.fill(store)
        for _ in 0..<30 { await rig.append(store, 40) }
        await store.close()
      }
      // A page of the schema: everything else is whole.
      let damage = FileDamage.zeroes(at: 100, count: 8)
      var random = SeededRandom(seed: 1)
      damage.apply(to: rig.folder.path + "/prism.db", using: &random)
      do {
        let store = try await rig.open()
        for _ in 0..<steps { _ = try await store.maintain() }
        rig.folder.keepAsKilled()
        await store.close()
        rig.folder.restoreKilled()
      }
      let store = try await rig.open()
      while try await store.maintain() {}
      let held = try await rig.held(store)
      #expect(Set(held.compactMap { $0 }) == rig.stored.subtracting(rig.delivered) && !held.contains(nil))
      #expect(Set(held).count == held.count)
      #expect(try await store.isBalanced())
      #expect(try await rig.corruptCount(store) == 0)
      await store.close()
    }

    @Test("what leaves while a database is brought over doesn't come back with it")
    func leavesMeanwhile() async throws {
      let rig = DamagedStore()
      do {
        let store = try await rig.open()
        try await rig.fill(store)
        _ = try await store.turn(UploadCommit(claims: [Reports.claim(20)]))
        await store.close()
      }
      die(rig, times: 3)
      let store = try await rig.open()
      #expect(store.health.setAside == 1)
      let packets = try await store.inFlight(Reports.namespace, .meta)
      #expect(packets.count == 2)
      let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 1, attempts: 1)
      let (delivered, dead) = (packets[0], packets[1])
      let dispositions: [Disposition] = [
        .delivered(delivered.id, receipt: Reports.receipt), .dead(dead.id, cause: cause),
      ]
      _ = try await store.turn(UploadCommit(dispositions: dispositions))
      while try await store.maintain() {}
      let held = try await rig.held(store)
      #expect(Set(held).count == held.count && !held.contains(nil))
      #expect(held.count == rig.stored.count - rig.delivered.count - delivered.itemCount)
      #expect(try await store.isBalanced())
      await store.close()
    }

    @Test("at most three old databases are kept")
    func bounded() async throws {
      let rig = DamagedStore()
      for round in 0..<6 {
        FaultFolder.write("not a database \(round)", to: rig.folder.path + "/prism.db")
        let store = try await rig.open()
        #expect(await rig.append(store, 1))
        await store.close()
      }
      #expect(rig.folder.names.count { $0.hasPrefix("prism.db.foreign-") && !$0.hasSuffix(".toc") } <= 3)
    }

    @Test("another program's database is set aside untouched; a newer prism's is refused untouched")
    func foreign() async throws {
      let rig = DamagedStore()
      do {
        let connection = try SQLiteConnection(.init(path: rig.folder.path + "/prism.db"))
        try connection.execute(
          "PRAGMA application_id = 77; PRAGMA user_version = 9; CREATE TABLE theirs (a); INSERT INTO theirs VALUES (42)"
        )
      }
      let store = try await rig.open()
      #expect(await rig.append(store, 1))
      await store.close()
      let aside = try #require(rig.folder.names.first { $0.hasPrefix("prism.db.foreign-") })
      let theirs = try SQLiteConnection(.init(path: rig.folder.path + "/" + aside))
      #expect(try theirs.firstInt("SELECT a FROM theirs") == 42)
      #expect(rig.log.contains { $0.contains("not a database of prism's") })
    }
  }
}
