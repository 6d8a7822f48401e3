import CFaultVFS
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

// Budgets that count instead of timing: a change that makes ingest or delivery dearer fails here on any machine.
extension StoreFaults {
  @Suite("Budgets") struct Budgets {
    @Test("a commit of 500 reports is one sync and one write for each 64 KiB, and a single report's is one of both")
    func callsOfACommit() async throws {
      let folder = FaultFolder()
      try await fill(folder, 1000)
      let store = try await open(folder)
      for (count, writesMax) in [(500, 8), (1, 1)] {
        #expect(try await calls(FVFS_SYNC_FAILS) { try await append(store, 5000..<5000 + count) } == 1)
        let writes = try await calls(FVFS_ENOSPC) { try await append(store, 6000..<6000 + count) }
        // A disk without SQLite's POWERSAFE_OVERWRITE, as the counting one is, gets a padding frame that ends elsewhere.
        #expect(writes <= writesMax + 2, "\(count) reports: \(writes) writes")
      }
      await store.close()
    }

    @Test("a checkpoint writes each changed page once, and 100 reports with their share of it are at most 10 writes")
    func callsOfACheckpoint() async throws {
      fvfs_keep_neighbours(1)
      defer { fvfs_keep_neighbours(0) }
      let folder = FaultFolder()
      try await fill(folder, 1000)
      let store = try await open(folder)
      let writes = try await calls(FVFS_ENOSPC) {
        for round in 0..<200 { try await append(store, 1000 + round * 100..<1100 + round * 100) }
        while try await store.maintain() {}
      }
      #expect(writes <= 200 * 10, "\(writes) writes")
      await store.close()
    }

    @Test("rows that are delivered are not written again: a row costs at most 1.05 of the bytes that its way in costs")
    func delivery() async throws {
      fvfs_keep_neighbours(1)
      defer { fvfs_keep_neighbours(0) }
      let folder = FaultFolder()
      let store = try await open(folder)
      fvfs_arm(FVFS_EIO, 0, 0)
      for round in 0..<60 { try await append(store, round * 500..<round * 500 + 500) }
      while try await store.maintain() {}
      let taken = fvfs_bytes()
      fvfs_arm(FVFS_EIO, 0, 0)
      while let packet = try await store.turn(UploadCommit(claims: [Reports.claim(1000)])).first ?? nil {
        _ = try await store.turn(UploadCommit(dispositions: [.delivered(packet.id, receipt: Reports.receipt)]))
      }
      let left = fvfs_bytes()
      #expect(Double(left) <= 0.05 * Double(taken), "\(taken / 30_000) bytes a row in, \(left / 30_000) out")
      #expect(taken / 30_000 <= 750, "\(taken / 30_000) bytes a row of 290")
      await store.close()
    }

    @Test("claiming and settling 100 rows costs the same I/O with 400 rows waiting and with 20,000")
    func backlogIsNotSeen() async throws {
      let few = try await ioOfAPacket(waiting: 400)
      let many = try await ioOfAPacket(waiting: 20_000)
      // A few pages of the table's tree more, whose depth grows with the logarithm, and of the next tables.
      #expect(many <= few + 8, "\(few) calls with few, \(many) with many")
    }

    @Test("eviction reads no more behind 20,000 rows of another user, which stay, than the rows that it takes")
    func evictionIsNotAWalk() async throws {
      let few = try await ioOfEviction(behind: 5000)
      let many = try await ioOfEviction(behind: 20_000)
      // The file is larger than SQLite's cache, so the pages of 2,000 rows are read, each once.
      #expect(many <= few + 2000 * 600 / 4096, "\(few) calls with few, \(many) with many")
    }

    /// Calls of 20 commits that each evict what they bring, after one that had to count.
    private func ioOfEviction(behind rows: Int) async throws -> Int64 {
      let folder = FaultFolder()
      try await fill(folder, rows)
      #expect(fvfs_register() == 0)
      // By a clock that does not move: users' shares are counted in slices of time.
      let store = try await folder.open(vfs: String(cString: fvfs_name), time: ManualTime(), segmentBytes: 4 << 20)
      let quota = StoreQuota(bytesMax: 2 * rows * 600, evictsOldest: true)
      var next = 100_000
      func append(_ count: Int) async {
        _ = await store.append([Reports.batch(next..<next + count, by: 7, quota: quota)])
        next += count
      }
      while try await store.status()[Reports.namespace]?[.meta]?.ledger[.evicted] == 0 { await append(500) }
      while try await store.maintain() {}  // the log is copied now, and not meanwhile
      let before = try await store.status()[Reports.namespace]?[.meta]?.ledger[.evicted] ?? 0
      let io = try await calls(FVFS_EIO) { for _ in 0..<20 { await append(100) } }
      let evicted = (try await store.status()[Reports.namespace]?[.meta]?.ledger[.evicted] ?? 0) - before
      #expect((1500...2500).contains(evicted), "\(evicted)")
      await store.close()
      return io
    }

    @Test("an hour of a report a second and a packet every 5 s writes at most 12 KiB a report")
    func trickle() async throws {
      fvfs_keep_neighbours(1)
      defer { fvfs_keep_neighbours(0) }
      let folder = FaultFolder()
      let time = ManualTime()
      #expect(fvfs_register() == 0)
      let store = try await folder.open(vfs: String(cString: fvfs_name), time: time, segmentBytes: 4 << 20)
      try await append(store, 0..<100)
      fvfs_arm(FVFS_EIO, 0, 0)
      for second in 0..<3600 {
        try await append(store, 100 + second..<101 + second)
        time.advance(by: .seconds(1))
        if second % 5 == 4 {
          let claim = Reports.claim(unixMilliseconds: time.unixMilliseconds)
          let packet = try #require(try await store.turn(UploadCommit(claims: [claim])).first ?? nil)
          var receipt = Reports.receipt
          receipt.unixMilliseconds = time.unixMilliseconds
          _ = try await store.turn(UploadCommit(dispositions: [.delivered(packet.id, receipt: receipt)]))
        }
        if second % 10 == 9 { _ = try await store.maintain(isIdle: false) }
      }
      let each = Double(fvfs_bytes()) / 3600 / 1024
      #expect(each <= 12, "\(each) KiB a report")
      await store.close()
    }

    /// Calls that claim, read and settle one packet, with nothing of the rows in memory.
    private func ioOfAPacket(waiting: Int) async throws -> Int64 {
      let folder = FaultFolder()
      try await fill(folder, waiting)
      let store = try await open(folder)
      let io = try await calls(FVFS_EIO) {
        let packet = try #require(try await store.turn(UploadCommit(claims: [Reports.claim(100)])).first ?? nil)
        #expect(packet.itemCount == 100)
        _ = try await store.turn(UploadCommit(dispositions: [.delivered(packet.id, receipt: Reports.receipt)]))
      }
      await store.close()
      return io
    }

    /// A function of its own, so that its store has let go of the folder when it is opened again.
    private func fill(_ folder: FaultFolder, _ count: Int) async throws {
      let store = try await open(folder)
      for start in stride(from: 0, to: count, by: 200) { try await append(store, start..<min(count, start + 200)) }
      await store.close()
    }

    private func open(_ folder: FaultFolder) async throws -> ReportStore {
      #expect(fvfs_register() == 0)
      return try await folder.open(vfs: String(cString: fvfs_name), segmentBytes: 4 << 20)
    }

    private func append(_ store: ReportStore, _ numbers: Range<Int>) async throws {
      guard case .committed = await store.append([Reports.batch(numbers)]) else { throw StoreError.diskFull }
    }

    private func calls(_ fault: fvfs_fault, _ body: () async throws -> Void) async throws -> Int64 {
      fvfs_arm(fault, 0, 0)
      try await body()
      return fvfs_calls()
    }
  }
}
