import CFaultVFS
import Foundation
import PrismProtocol
import PrismSQLite
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
        let company = SecondConnections(folder, seed: random.next())
        let workload = try await run(folder, fault, call, company)
        #expect(company.faults == [], "\(fault.testDescription), call \(call): seen by another connection")
        company.leave()
        if fvfs_failures() == 0 { break }
        try await check(folder, workload, "\(fault.testDescription), call \(call)")
        call += soakFactor > 1 ? 1 : Int64.random(in: 3...12, using: &random)
      }
      print("failing I/O, \(fault.testDescription): up to call \(call)")
      #expect(call > 20)
    }

    /// Work on a file with free pages, which changes no row.
    enum Rewriting: String, CaseIterable {
      case givesPagesBack, erases
    }

    @Test(
      "whichever I/O fails while a file is rewritten: every row stays, the file is sound", arguments: cases,
      Rewriting.allCases)
    func everyCallOfVacuum(fault: Case, rewriting: Rewriting) async throws {
      #expect(fvfs_register() == 0)
      let (swollen, folder) = (FaultFolder(), FaultFolder())
      let numbers = try await swell(swollen)
      var random = SeededRandom(seed: SeededRandom.announcedSeed("failing I/O in a vacuum, \(fault.testDescription)"))
      var call: Int64 = 1
      repeat {
        folder.clear()
        try FileManager.default.copyItem(atPath: swollen.path + "/prism.db", toPath: folder.path + "/prism.db")
        try await rewrite(folder, rewriting, fault, call)
        let store = try await folder.open()
        #expect(Set(try await store.held()) == Set(numbers), "\(fault.testDescription), call \(call)")
        await store.close()
        let connection = try SQLiteConnection(.init(path: folder.path + "/prism.db"))
        #expect(try connection.firstText("PRAGMA integrity_check") == "ok", "\(fault.testDescription), call \(call)")
        call += soakFactor > 1 ? 1 : Int64.random(in: 3...12, using: &random)
      } while fvfs_failures() > 0
      print("failing I/O in a vacuum, \(fault.testDescription): up to call \(call)")
      #expect(call > 3)
    }

    private func rewrite(
      _ folder: FaultFolder, _ rewriting: Rewriting, _ fault: Case, _ call: Int64
    ) async throws {
      let store = try await folder.open(vfs: String(cString: fvfs_name))
      fvfs_arm(fault.fault, call, fault.isForEver ? 1 : 0)
      switch rewriting {
      case .givesPagesBack: for _ in 0..<6 { _ = try? await store.maintain() }
      case .erases:
        var run = ErasureRun(of: Reports.namespace) { _ in false }
        for _ in 0..<20 where !run.isComplete { run = (try? await store.erase(run)) ?? run }
      }
      fvfs_heal()
      await store.close()
    }

    /// A database with 3 MiB of free pages before its rows. - Returns: the rows' numbers.
    private func swell(_ folder: FaultFolder) async throws -> Range<Int> {
      let store = try await folder.open()
      for start in stride(from: 0, to: 6000, by: 500) { _ = await store.append([Reports.batch(start..<start + 500)]) }
      for _ in 0..<6 {
        let packet = try #require(try await store.turn(UploadCommit(claims: [Reports.claim(1000)])).first ?? nil)
        _ = try await store.turn(UploadCommit(dispositions: [.delivered(packet.id, receipt: Reports.receipt)]))
      }
      let numbers = 6000..<6050
      _ = await store.append([Reports.batch(numbers)])
      await store.close()
      return numbers
    }

    private func run(
      _ folder: FaultFolder, _ fault: Case, _ call: Int64, _ company: SecondConnections
    ) async throws -> Workload {
      fvfs_arm(fault.fault, call, fault.isForEver ? 1 : 0)
      defer { fvfs_heal() }
      var workload = Workload()
      workload.company = company
      do {
        let store = try await folder.open(vfs: String(cString: fvfs_name))
        await workload.run(store, rounds: 8)
        fvfs_heal()
        // A reader of the file that a failing store has just begun keeps it from being set up.
        company.leave()
        #expect(store.health.setAside == 0, "\(fault.testDescription), call \(call): a sound file is set aside")
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
      while try await store.maintain() {}
      let held = try await store.held()
      #expect(!held.contains(nil), "\(what): damaged")
      #expect(Set(held).count == held.count, "\(what): doubled")
      let must = workload.acknowledged.subtracting(workload.leaving)
      #expect(
        must.isSubset(of: held.compactMap { $0 }), "\(what): lost \(must.subtracting(held.compactMap { $0 }).count)")
      #expect(try await store.isBalanced(), "\(what): the ledger")
      #expect(try await workload.records.loss(in: store) == nil, "\(what): records")
      #expect(try await workload.ring.loss(in: store, isSalvaged: false) == nil, "\(what): the ring")
      await store.close()
      let connection = try SQLiteConnection(.init(path: folder.path + "/prism.db"))
      #expect(try connection.firstText("PRAGMA integrity_check") == "ok", "\(what): the file")
    }
  }
}
