import CFaultVFS
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// The I/O of a run is recorded, and the disk rebuilt as a power loss at any point would have left it: what was not
/// synced is there, torn or missing, in any order.
extension StoreFaults {
  struct PowerLoss {
    /// Lost, damaged or doubled reports over `states` states, and how many failed to open.
    private func losses(durability: StoreOptions.Durability, states: Int, seed: UInt64) async throws -> Int {
      #expect(fvfs_register() == 0)
      let (recorded, rebuilt) = (FaultFolder(), FaultFolder())
      var points: [(point: Int64, known: Workload)] = []
      fvfs_record()
      do {
        let store = try await recorded.open(vfs: String(cString: fvfs_name), durability: durability)
        var workload = Workload { points.append((fvfs_events(), $0)) }
        await workload.run(store, rounds: 40)
      }
      fvfs_record_end()
      var random = SeededRandom(seed: seed)
      let chosen = (0..<states).map { _ in Int64.random(in: 1...fvfs_events(), using: &random) }.sorted()
      var losses = 0
      for point in chosen {
        rebuilt.clear()
        #expect(fvfs_rebuild(point, random.next(), rebuilt.path) >= 0)
        let known = points.last { $0.point <= point }?.known ?? Workload()
        let store = try await rebuilt.open()
        let inFlight = try await store.inFlight(Reports.namespace, .meta).map(\.id)
        let isFrozen = known.frozen.map { inFlight.contains($0) } ?? true
        let held = try await store.held()
        let must = known.acknowledged.subtracting(known.leaving)
        let isWhole = !held.contains(nil) && Set(held).count == held.count && must.isSubset(of: held.compactMap { $0 })
        let claimed = try await store.status()[Reports.namespace]?[.meta]?.ledger[.claimed] ?? 0
        let isSound = try await store.isBalanced() && claimed == held.count && isWhole && isFrozen
        if !isSound { losses += 1 }
        if !isSound && durability == .full {
          print(
            "after event \(point): lost \(must.subtracting(held.compactMap { $0 }).count), held \(held.count), \(isFrozen ? "" : "no longer frozen")"
          )
        }
        await store.close()
      }
      print("power loss, durability \(durability): \(states) states, \(losses) with a loss")
      return losses
    }

    @Test("after a power loss at any point every acknowledged report is there once and whole, and no packet thaws")
    func full() async throws {
      let seed = SeededRandom.announcedSeed("power loss")
      #expect(try await losses(durability: .full, states: 400 * soakFactor, seed: seed) == 0)
    }

    @Test("with durability normal some are lost: the rig sees what it is to see")
    func normal() async throws {
      let seed = SeededRandom.announcedSeed("power loss, durability normal")
      #expect(try await losses(durability: .normal, states: 200, seed: seed) > 0)
    }
  }
}
