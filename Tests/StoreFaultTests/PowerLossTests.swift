import CFaultVFS
import PrismBase
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// The I/O of a run is recorded, and the disk rebuilt as a power loss at any point would have left it. Writes that were
/// not synced are there, torn or missing, in any order.
extension StoreFaults {
  struct PowerLoss {
    /// A recorded run: what was known at which event.
    private typealias Points = [(point: Int64, known: Workload)]

    private func record(
      _ durability: StoreOptions.Durability, company: SecondConnections? = nil, in folder: FaultFolder
    ) async throws -> Points {
      #expect(fvfs_register() == 0)
      var points: Points = []
      fvfs_record()
      do {
        let store = try await folder.open(vfs: String(cString: fvfs_name), durability: durability)
        var workload = Workload { points.append((fvfs_events(), $0)) }
        workload.company = company
        await workload.run(store, rounds: 40)
      }
      fvfs_record_end()
      return points
    }

    /// How many of `states` states lost, damaged or doubled reports.
    /// - Parameter isSalvaged: the store reads each without SQLite, because starts died before.
    private func losses(_ points: Points, states: Int, seed: UInt64, isSalvaged: Bool = false) async throws -> Int {
      let rebuilt = FaultFolder()
      var random = SeededRandom(seed: seed)
      let chosen = (0..<states).map { _ in Int64.random(in: 1...fvfs_events(), using: &random) }.sorted()
      var losses = 0
      for point in chosen {
        rebuilt.clear()
        #expect(fvfs_rebuild(point, random.next(), rebuilt.path) >= 0)
        if isSalvaged { Self.noteDeaths(in: rebuilt) }
        let known = points.last { $0.point <= point }?.known ?? Workload()
        var loss: String?
        do { loss = try await self.loss(known, in: rebuilt, isSalvaged: isSalvaged) } catch { loss = "\(error)" }
        if let loss {
          losses += 1
          if losses <= 10 { print("after event \(point): \(loss)") }
        }
      }
      return losses
    }

    /// Three starts of this boot died, and they never looked at the log.
    private static func noteDeaths(in folder: FaultFolder) {
      let boot = FaultFolder.read("/proc/sys/kernel/random/boot_id").filter { $0 != "\n" }
      let now = SystemTime().unixMilliseconds
      let starts = (1...3).map { "start \(now - Int64($0) * 1000)\n" }.joined()
      FaultFolder.write("boot \(boot)\nlog before\n\(starts)", to: folder.path + "/prism.run")
    }

    /// The fault of a database; nil: nothing.
    private func loss(_ known: Workload, in folder: FaultFolder, isSalvaged: Bool) async throws -> String? {
      let store = try await folder.open()
      let company = SecondConnections(folder, seed: 0)
      repeat { company.takeTurn() } while try await store.maintain()
      let inFlight = try await store.inFlight(Reports.namespace, .meta).map(\.id)
      let isFrozen = known.frozen.isSubset(of: inFlight)
      let held = try await store.held()
      let lost = known.acknowledged.subtracting(known.leaving).subtracting(held.compactMap { $0 }).count
      let isWhole = !held.contains(nil) && Set(held).count == held.count
      let claimed = try await store.status()[Reports.namespace]?[.meta]?.ledger[.claimed] ?? 0
      let isSound = try await store.isBalanced() && claimed == held.count
      let lostRecord = try await known.records.loss(in: store, isSalvaged: isSalvaged)
      let lostKept = try await known.ring.loss(in: store, isSalvaged: isSalvaged)
      let lostGone = try await known.triggers.loss(in: store, isSalvaged: isSalvaged)
      company.check()
      let (faults, setAside) = (company.faults, store.health.setAside)
      company.leave()
      await store.close()
      let isOfReports = lost == 0 && isWhole && isSound && isFrozen
      if isOfReports && lostRecord == nil && lostKept == nil && lostGone == nil && faults.isEmpty
        && (setAside == 0 || isSalvaged)
      {
        return nil
      }
      return "lost \(lost), held \(held.count), whole \(isWhole), counted \(claimed), still frozen \(isFrozen), "
        + "set aside \(setAside), by another connection \(faults), of records: \(lostRecord ?? "nothing"), "
        + "of the ring: \(lostKept ?? "nothing"), let go: \(lostGone ?? "nothing")"
    }

    @Test(
      "after any power loss every acknowledged report is there once and whole, and no packet in flight waits again"
    )
    func full() async throws {
      let seed = SeededRandom.announcedSeed("power loss")
      let folder = FaultFolder()
      let points = try await record(.full, in: folder)
      #expect(try await losses(points, states: 400 * soakFactor, seed: seed) == 0)
    }

    @Test(
      "the same beside readers that stay open and checks after each I/O call, which all find the file sound",
      arguments: [0, 1])
    func besideReaders(keepsNeighbours: Int32) async throws {
      fvfs_keep_neighbours(keepsNeighbours)
      defer { fvfs_keep_neighbours(0) }
      let seed = SeededRandom.announcedSeed("power loss beside readers, \(keepsNeighbours)")
      let folder = FaultFolder()
      let company = SecondConnections(folder, seed: seed)
      let points = try await company.watching { try await record(.full, company: company, in: folder) }
      #expect(company.faults == [])
      #expect(company.checks > 200)
      company.leave()
      #expect(try await losses(points, states: 100 * soakFactor, seed: seed) == 0)
      #expect(try await losses(points, states: 50 * soakFactor, seed: seed, isSalvaged: true) == 0)
    }

    @Test("with durability normal some are lost: the rig sees what it is to see")
    func normal() async throws {
      let seed = SeededRandom.announcedSeed("power loss, durability normal")
      let folder = FaultFolder()
      let points = try await record(.normal, in: folder)
      #expect(try await losses(points, states: 200, seed: seed) > 0)
    }
  }
}
