import PrismBase
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

/// Counts the reports that a scan reads until its time is up, by a clock that each of them turns.
@Suite("Scans of many reports")
struct ReportScanTests {
  @Test(
    "a scan ends soon after its time is up, however large the store's windows and slow its reports are",
    arguments: [1, 20, 500], [false, true])
  func ends(microsecondsEach: Int64, oldestFirst: Bool) async throws {
    let store = CostlyReports(count: 100_000_000, microsecondsEach: microsecondsEach)
    let began = store.time.uptime
    let scan = ReportScan(queries: store, time: store.time)
    let reach = try await scan.run(ReportFilter(), oldestFirst: oldestFirst) { (part) throws(StoreFailure) in
      store.read(part)
      return true
    }
    // The first part is read before the speed is known; then half of what is left, and at least 1,024 ids.
    let first = Duration.microseconds(ScanPace.firstCount * microsecondsEach)
    #expect(store.time.uptime - began <= max(ReportScan.budget, first) + .milliseconds(50))
    #expect(reach.timeIsUp)
    let parts = store.parts
    #expect(parts.count >= (first < ReportScan.budget ? 2 : 1))
    for (one, next) in zip(parts, parts.dropFirst()) {
      #expect(oldestFirst ? one.upperBound + 1 == next.lowerBound : next.upperBound + 1 == one.lowerBound)
    }
    #expect(reach.id == (oldestFirst ? parts.last?.upperBound : parts.last?.lowerBound))
    #expect(reach.since == (oldestFirst ? nil : parts.last?.lowerBound))
  }

  @Test("a scan with time reads every report once, in few parts", arguments: [false, true])
  func whole(oldestFirst: Bool) async throws {
    let store = CostlyReports(count: 5_000_000, microsecondsEach: 0)
    let reach = try await ReportScan(queries: store, time: store.time).run(ReportFilter(), oldestFirst: oldestFirst) {
      (part) throws(StoreFailure) in
      store.read(part)
      return true
    }
    #expect(!reach.timeIsUp && reach.since == nil)
    #expect(store.parts.reduce(0) { $0 + $1.count } == 5_000_000)
    #expect(store.parts.count <= 6)
  }

  @Test("an answer that is not whole says so, though its last report is gone")
  func goneReport() async throws {
    let store = CostlyReports(count: 10_000_000, microsecondsEach: 100, hasTimes: false)
    let reach = try await ReportScan(queries: store, time: store.time).run(ReportFilter()) {
      (part) throws(StoreFailure) in
      store.read(part)
      return true
    }
    #expect(reach.timeIsUp && reach.since == store.time.unixMilliseconds)
  }
}

/// One window of reports, each of which takes time to read.
private final class CostlyReports: ReportQueries {
  let time = ManualTime()
  private let count: Int64, microsecondsEach: Int64
  private let hasTimes: Bool
  private let read = Mutex<[ClosedRange<Int64>]>([])

  init(count: Int64, microsecondsEach: Int64, hasTimes: Bool = true) {
    (self.count, self.microsecondsEach, self.hasTimes) = (count, microsecondsEach, hasTimes)
  }

  var parts: [ClosedRange<Int64>] { read.withLock { $0 } }

  func read(_ part: ReportFilter) {
    guard let ids = part.ids else { return }
    read.withLock { $0.append(ids) }
    time.advance(by: .microseconds(Int64(ids.count) * microsecondsEach))
  }

  func windows(_ filter: ReportFilter) async throws(StoreFailure) -> [ClosedRange<Int64>] { [1...count] }
  func newestID() async throws(StoreFailure) -> Int64 { count }
  func receivedTime(from id: Int64) async throws(StoreFailure) -> Int64? { hasTimes ? id : nil }
  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) async throws(StoreFailure) -> [ReportCount] { [] }
  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) async throws(StoreFailure) -> [ReportNumber] { [] }
  func streams(of device: String?, limit: Int) async throws(StoreFailure) -> [DeviceStream] { [] }
  func types(limit: Int) async throws(StoreFailure) -> [TypeName] { [] }
}
