import CFaultVFS
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

extension StoreFaults {
  struct StartHistories {
    @Test("up to ten starts that end in any way, in any order: no answered report is lost or unnamed")
    func random() async throws {
      #expect(fvfs_register() == 0)
      fvfs_keep_neighbours(1)
      defer { fvfs_keep_neighbours(0) }
      let seed = SeededRandom.announcedSeed("histories of starts")
      let histories = 40 * soakFactor
      for number in 0..<histories {
        var random = SeededRandom(seed: seed &+ UInt64(number))
        let rig = StartHistoryRig()
        do {
          try await rig.begin()
          // One history in four has a damaged file in it; one in four dies of the same again and again.
          let isDamaged = random.oneIn(4)
          let only = random.oneIn(4) ? StartHistoryRig.End.killed : nil
          let ends = StartHistoryRig.End.allCases.filter { $0 != .corrupted || isDamaged }
          for _ in 0..<Int.random(in: 1...10, using: &random) {
            try await rig.start(endingBy: only ?? random.pick(ends), using: &random)
          }
          if let wrong = try await rig.verdict() {
            Issue.record("seed \(seed), history \(number): \(wrong); \(rig.story); \(rig.log.suffix(6))")
          }
        } catch { Issue.record("seed \(seed), history \(number): \(error); \(rig.story); \(rig.log.suffix(6))") }
      }
      print("histories of starts: \(histories)")
    }

    @Test("while a database is brought over under load, reports leave in their order", arguments: [1, 3, 40])
    func order(slices: Int) async throws {
      let rig = DamagedStore()
      do {
        let store = try await rig.open()
        for _ in 0..<20 { await rig.append(store, 60) }
        await store.close()
      }
      FaultFolder.write("prism.db.corrupt-1 damaged\n", to: rig.folder.path + "/prism.db.adopt")
      let store = try await rig.open()
      var numbers: [Int] = []
      var isMore = true
      while isMore {
        await rig.append(store, 5)
        for _ in 0..<slices where isMore { isMore = try await store.maintain() }
        while let packet = try await store.turn(UploadCommit(claims: [Reports.claim(50)])).first ?? nil {
          #expect(store.health.awaited[Reports.namespace]?[.meta] == nil)
          numbers += packet.rowTexts
            .compactMap { Reports.number(in: $0) }
          _ = try await store.turn(UploadCommit(dispositions: [.delivered(packet.id, receipt: Reports.receipt)]))
        }
      }
      #expect(numbers.count == rig.stored.count)
      #expect(numbers == numbers.sorted())
      await store.close()
    }
  }
}
