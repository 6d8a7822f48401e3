import CFaultVFS
import Foundation
import Glibc
import PrismBase
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Reports that are kept in memory (docs/recorder.md, "In memory"): kills between any two I/O calls of both files, and a folder
/// that is full.
extension StoreFaults {
  struct Memory {
    @Test(
      "after a kill before any I/O call what was let go leaves once, and the ledger balances", arguments: [false, true])
    func kills(isSingleFault: Bool) async throws {
      #expect(fvfs_register() == 0)
      var random = SeededRandom(seed: SeededRandom.announcedSeed("kills with reports in memory"))
      let folder = FaultFolder()
      var (call, kills): (Int64, Int) = (1, 0)
      repeat {
        folder.clear()
        let work = try await run(folder, call, isForEver: !isSingleFault)
        let fault = try await fault(work, in: folder, mayDiffer: isSingleFault)
        #expect(fault == nil, "call \(call): \(fault ?? "")")
        (call, kills) = (call + (soakFactor > 1 ? 1 : Int64.random(in: 1...9, using: &random)), kills + 1)
      } while fvfs_failures() > 0
      print("kills with reports in memory: \(kills), up to call \(call)")
      #expect(kills > 20)
    }

    /// Every I/O call from this one on fails, as if the process had died: what it does then does not reach the files.
    private func run(_ folder: FaultFolder, _ call: Int64, isForEver: Bool) async throws -> TriggerWork {
      let store = try await folder.open(vfs: String(cString: fvfs_name))
      try await store.apply(TriggerWork.policies(memoryFolder: folder.path))
      await store.markReady()?.value
      var work = TriggerWork(usesMemory: true)
      fvfs_arm(FVFS_EIO, call, isForEver ? 1 : 0)
      defer { fvfs_heal() }
      for round in 0..<24 {
        await work.step(store, round: round) { _ in }
        if round % 5 == 4 { _ = try? await store.maintain() }
      }
      await store.close()
      return work
    }

    private func fault(_ work: TriggerWork, in folder: FaultFolder, mayDiffer: Bool) async throws -> String? {
      let store = try await folder.open()
      try await store.apply(TriggerWork.policies(memoryFolder: folder.path))
      guard try await store.isBalanced() else { return "the ledger does not balance" }
      let before = try await store.status().values.first?[.meta]
      if before?.inMemory.lost ?? 0 > 0 { return "\(before?.inMemory.lost ?? 0) are lost" }
      let loss = try await work.loss(in: store, isSalvaged: false, mayDiffer: mayDiffer)
      let isBalanced = try await store.isBalanced()
      let setAside = store.health.setAside
      await store.close()
      return setAside > 0 ? "the database is set aside" : isBalanced ? loss : "the ledger does not balance at the end"
    }

    @Test(
      "a full folder in memory costs its oldest reports and no other",
      .enabled(if: getuid() == 0, "a file system of a test's own needs root"))
    func full() async throws {
      let (state, folder) = (FaultFolder(), TemporaryFolder.make())
      try #require(mount("prism", folder, "tmpfs", 0, "size=4m") == 0)
      defer {
        umount2(folder, Int32(MNT_DETACH))
        rmdir(folder)
      }
      let store = try await state.open()
      var policy = RetentionPolicy(expirationDays: 15, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20)
      policy.memoryFolder = folder
      try await store.apply([Reports.namespace: policy])
      let quota = StoreQuota(bytesMax: 1 << 40, evictsOldest: false, memoryBytesMax: 1 << 30)
      var refused = 0
      for round in 0..<200 {
        var batch = Reports.batch(round * 100..<round * 100 + 100, quota: quota, priority: .kept)
        batch.types = [.init(type: batch.types[0].type, priority: .kept, isRealtime: false, isInMemory: true)]
        let others = Reports.batch(100_000 + round..<100_001 + round)
        guard case .committed(let outcomes) = await store.append([batch, others]) else {
          Issue.record("round \(round): not taken")
          break
        }
        refused += outcomes[0].exceptions.count
        #expect(outcomes[1].exceptions.isEmpty)
      }
      let status = try #require(try await store.status()[Reports.namespace]?[.meta])
      #expect(status.ledger.isBalanced && status.ledger[.waiting] == 200 && store.health.state == .working)
      #expect(status.inMemory.rows > 1000 && status.ledger[.overwritten] > 5000 && refused == 0)
      // Others take what is left.
      let rest = open(folder + "/other", O_WRONLY | O_CREAT, 0o600)
      while Glibc.write(rest, [UInt8](repeating: 1, count: 4096), 4096) > 0 {}
      close(rest)
      var batch = Reports.batch(50_000..<52_000, quota: quota, priority: .kept)
      batch.types = [.init(type: batch.types[0].type, priority: .kept, isRealtime: false, isInMemory: true)]
      guard case .committed(let outcomes) = await store.append([batch, Reports.batch(200_000..<200_001)]) else {
        Issue.record("not taken")
        return
      }
      #expect([0, 2000].contains(outcomes[0].exceptions.count) && outcomes[1].exceptions.isEmpty)
      #expect(try await store.isBalanced())
      await store.close()
    }
  }
}
