import CFaultVFS
import PrismStore
import PrismTestSupport
import Testing

/// One VFS, one recording: the suites below take turns.
@Suite("Faults of the disk", .serialized)
struct StoreFaults {}

extension StoreFaults {
  struct EveryIOFails {
    struct Case: Sendable, CustomTestStringConvertible {
      let fault: fvfs_fault
      let name: String
      let isForEver: Bool
      var testDescription: String { "\(name)\(isForEver ? ", from then on" : "")" }
    }

    static let cases = [
      (FVFS_EIO, "EIO"), (FVFS_ENOSPC, "no space"), (FVFS_SHORT_WRITE, "a short write"),
      (FVFS_SYNC_FAILS, "a failed sync"),
    ]
    .flatMap { fault, name in [false, true].map { Case(fault: fault, name: name, isForEver: $0) } }

    @Test(
      "whichever I/O fails: nothing that was acknowledged is lost or doubled, the file is sound, and work goes on",
      arguments: cases)
    func everyCall(fault: Case) async throws {
      #expect(fvfs_register() == 0)
      let folder = FaultFolder()
      var random = SeededRandom(seed: SeededRandom.announcedSeed("failing I/O, \(fault.testDescription)"))
      // In steps in the short form; a soak tries every call.
      var call: Int64 = 1
      while true {
        folder.clear()
        let workload = try await run(folder, fault, call)
        if fvfs_failures() == 0 { break }
        try await check(folder, workload, "\(fault.testDescription), call \(call)")
        call += soakFactor > 1 ? 1 : Int64.random(in: 3...12, using: &random)
      }
      #expect(call > 20)
    }

    private func run(_ folder: FaultFolder, _ fault: Case, _ call: Int64) async throws -> Workload {
      fvfs_arm(fault.fault, call, fault.isForEver ? 1 : 0)
      defer { fvfs_heal() }
      var workload = Workload()
      do {
        let store = try await folder.open(vfs: String(cString: fvfs_name))
        await workload.run(store, rounds: 8)
        fvfs_heal()
        // A full disk is looked at again a second later; any other fault is over by the second try.
        var isTaken = false
        for _ in 0..<3 where !isTaken { isTaken = await workload.append(store, count: 3) }
        #expect(isTaken || fault.fault == FVFS_ENOSPC || fault.fault == FVFS_SHORT_WRITE, "the same store works on")
        await store.close()
      } catch is StoreError {}  // it could not even be opened: nothing was acknowledged
      return workload
    }

    private func check(_ folder: FaultFolder, _ workload: Workload, _ what: String) async throws {
      let store = try await folder.open()
      let held = try await store.held()
      #expect(!held.contains(nil), "\(what): damaged")
      #expect(Set(held).count == held.count, "\(what): doubled")
      let must = workload.acknowledged.subtracting(workload.leaving)
      #expect(
        must.isSubset(of: held.compactMap { $0 }), "\(what): lost \(must.subtracting(held.compactMap { $0 }).count)")
      #expect(try await store.isBalanced(), "\(what): the ledger")
      await store.close()
      let connection = try SQLiteConnection(.init(path: folder.path + "/prism.db"))
      #expect(try connection.firstText("PRAGMA integrity_check") == "ok", "\(what): the file")
    }
  }
}
