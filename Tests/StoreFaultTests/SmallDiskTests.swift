import Foundation
import Glibc
import PrismBase
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// A disk that the store itself fills: no other program will make room on it.
extension StoreFaults {
  @Suite(.enabled(if: getuid() == 0, "a file system of a test's own needs root")) struct SmallDisk {
    private let time = ManualTime()

    @Test(
      "a full disk takes reports again as soon as its rows were delivered, however small it is", arguments: [12, 24])
    func filled(megabytes: Int) async throws {
      let folder = try mounted(megabytes)
      defer {
        umount2(folder, Int32(MNT_DETACH))
        rmdir(folder)
      }
      var options = StoreOptions(folder: folder)
      (options.time, options.log) = (time, Logger(write: { _ in }))
      let store = try await ReportStore.open(options)
      var (next, records) = (0, RecordWork())
      for round in 0..<2 {
        await records.step(store, round: 0) { _ in }
        while await append(store, next..<next + 500) { next += 500 }
        #expect(store.health.state == .diskFull, "round \(round)")
        // A put is refused, and what was put before is read.
        let before = records.stored
        await records.step(store, round: 0) { _ in }
        #expect(records.stored == before && !before.isEmpty)
        #expect(try await records.loss(in: store) == nil)
        while case let packet = try await store.turn(UploadCommit(claims: [Reports.claim(500)]))[0], let packet {
          _ = try await store.turn(UploadCommit(dispositions: [.delivered(packet.id, receipt: Reports.receipt)]))
        }
        #expect(try await store.isBalanced())
        time.advance(by: .seconds(2))
        #expect(await append(store, next..<next + 1), "round \(round)")
        next += 1
        while try await store.maintain() {}
      }
      await store.close()
    }

    private func append(_ store: ReportStore, _ numbers: Range<Int>) async -> Bool {
      guard case .committed = await store.append([Reports.batch(numbers)]) else { return false }
      return true
    }

    private func mounted(_ megabytes: Int) throws -> String {
      let folder = TemporaryFolder.make()
      try #require(mount("prism", folder, "tmpfs", 0, "size=\(megabytes)m") == 0)
      return folder
    }
  }
}
