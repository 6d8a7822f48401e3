import Glibc
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// The store's files are deleted or replaced while it runs.
extension StoreFaults {
  struct Displaced {
    enum Deed: String, CaseIterable, Sendable {
      case databaseDeleted, logDeleted, everythingDeleted, folderDeleted, databaseReplaced, emptied, moved
      case indexDeleted, indexReplaced, indexOverwritten, indexHeadOverwritten
    }

    @Test(
      "after any change of its files under it no answered report is lost, and no report that would be is answered",
      arguments: Deed.allCases)
    func displaced(deed: Deed) async throws {
      let rig = DamagedStore()
      try await live(rig, through: deed)
      try await expectAll(rig, deed)
    }

    private func live(_ rig: DamagedStore, through deed: Deed) async throws {
      let store = try await rig.open()
      try await rig.fill(store)
      perform(deed, rig.folder)
      var isTaken = false
      for _ in 0..<5 where !isTaken { isTaken = await rig.append(store, 30) }
      #expect(isTaken, "reports are taken again, without a restart: \(rig.log)")
      // The log is copied, begun again and copied again.
      for _ in 0..<3 {
        while try await store.maintain() {}
        await rig.append(store, 30)
      }
      #expect(store.health.state == .working)
      // Only the state that the next start finds counts.
      rig.folder.keepAsKilled()
      await store.close()
      rig.folder.restoreKilled()
    }

    private func perform(_ deed: Deed, _ folder: FaultFolder) {
      let path = folder.path
      switch deed {
      case .databaseDeleted: unlink(path + "/prism.db")
      case .logDeleted: unlink(path + "/prism.db-wal")
      case .everythingDeleted: folder.clear()
      case .folderDeleted:
        folder.clear()
        rmdir(path)
      case .databaseReplaced:
        rename(path + "/prism.db", path + "/theirs")
        FaultFolder.write("somebody's own\n", to: path + "/prism.db")
      case .emptied: truncate(path + "/prism.db", 0)
      case .moved: rename(path + "/prism.db", path + "/elsewhere")
      case .indexDeleted: unlink(path + "/prism.db-shm")
      case .indexReplaced:
        unlink(path + "/prism.db-shm")
        FaultFolder.write(String(repeating: "somebody's own\n", count: 3000), to: path + "/prism.db-shm")
      case .indexOverwritten: Self.overwrite(path + "/prism.db-shm", 0..<32768)
      case .indexHeadOverwritten: Self.overwrite(path + "/prism.db-shm", 0..<136)
      }
    }

    /// In place: it is mapped into the daemon's memory.
    static func overwrite(_ path: String, _ bytes: Range<Int>) {
      let descriptor = open(path, O_WRONLY)
      defer { close(descriptor) }
      var random = SeededRandom(seed: 1)
      let noise = bytes.map { _ in UInt8.random(in: 0...255, using: &random) }
      pwrite(descriptor, noise, noise.count, off_t(bytes.lowerBound))
    }

    private func expectAll(_ rig: DamagedStore, _ deed: Deed) async throws {
      let store = try await rig.open()
      while try await store.maintain() {}
      let held = try await rig.held(store)
      let lost = rig.stored.subtracting(rig.delivered).subtracting(held.compactMap { $0 }).count
      #expect(!held.contains(nil) && Set(held).count == held.count)
      let counted = try await rig.corruptCount(store)
      #expect(lost <= (deed == .emptied ? counted : 0), "\(lost) lost: \(rig.log)")
      #expect(try await store.isBalanced())
      let isHarmless = deed.rawValue.hasPrefix("index")
      #expect(isHarmless || rig.log.contains { $0.contains("error ") }, "it is said")
      await store.close()
    }

    @Test("files that are gone when they are opened again: the call that finds out fails, and work goes on")
    func goneWhileClosed() async throws {
      let rig = DamagedStore()
      let store = try await rig.open()
      try await rig.fill(store)
      let policy = RetentionPolicy(expirationDays: 1, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20)
      try await store.apply([Reports.namespace: policy])
      await store.close()
      rig.folder.clear()
      // It knew of dead letters to expire.
      do { _ = try await store.maintain() } catch {}
      var isTaken = false
      for _ in 0..<3 where !isTaken { isTaken = await rig.append(store, 5) }
      #expect(isTaken, "\(rig.log)")
      while try await store.maintain() {}
      #expect(try await store.isBalanced())
      await store.close()
    }

    @Test("while the database can't be brought back no report is answered as stored, and uploads go on")
    func noWayBack() async throws {
      let rig = DamagedStore()
      try await blocked(rig)
      try await expectAll(rig, .folderDeleted)
    }

    private func blocked(_ rig: DamagedStore) async throws {
      let store = try await rig.open()
      try await rig.fill(store)
      rig.folder.clear()
      rmdir(rig.folder.path)
      // A file is in the folder's place.
      FaultFolder.write("in the way", to: rig.folder.path)
      #expect(await !rig.append(store, 5))
      #expect(await !rig.append(store, 5))
      #expect(store.health.state == .displaced && !store.health.takesReports)
      try await rig.deliver(store, 20)
      unlink(rig.folder.path)
      #expect(await rig.append(store, 5))
      #expect(store.health.state == .working)
      await store.close()
    }
  }
}
