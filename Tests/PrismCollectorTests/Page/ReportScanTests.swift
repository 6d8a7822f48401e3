import PrismBase
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

/// Counts the windows that a scan reads until its time is up, by a clock that each of them turns.
@Suite("Scans of many reports")
struct ReportScanTests {
  @Test("a scan ends with the window within which its time is up, and says where it came to", arguments: [false, true])
  func ends(oldestFirst: Bool) async throws {
    let store = SlowReports(windows: 100, millisecondsEach: 100)
    let reach = try await ReportScan(queries: store, time: store.time).run(
      ReportFilter(scope: .everything), oldestFirst: oldestFirst, within: .milliseconds(450), store.read)
    let read = store.parts
    #expect(reach.timeIsUp && read.count == 5)
    for (one, next) in zip(read, read.dropFirst()) {
      #expect(oldestFirst ? one.upperBound + 1 == next.lowerBound : next.upperBound + 1 == one.lowerBound)
    }
    #expect(reach.id == (oldestFirst ? read.last?.upperBound : read.last?.lowerBound))
    #expect(reach.since == (oldestFirst ? nil : read.last?.lowerBound))
  }

  @Test("a scan with time reads every window once", arguments: [false, true])
  func whole(oldestFirst: Bool) async throws {
    let store = SlowReports(windows: 100, millisecondsEach: 1)
    let reach = try await ReportScan(queries: store, time: store.time).run(
      ReportFilter(scope: .everything), oldestFirst: oldestFirst, within: .seconds(1), store.read)
    #expect(!reach.timeIsUp && reach.since == nil)
    #expect(store.parts.count == 100 && Set(store.parts.map(\.lowerBound)).count == 100)
  }

  @Test("an answer that is not whole says so, though its last report is gone")
  func goneReport() async throws {
    let store = SlowReports(windows: 3, millisecondsEach: 100, hasTimes: false)
    let reach = try await ReportScan(queries: store, time: store.time).run(
      ReportFilter(scope: .everything), within: .milliseconds(50), store.read)
    #expect(reach.timeIsUp && reach.since == store.time.unixMilliseconds)
  }
}

/// Windows of ten reports each, which take time to read.
private final class SlowReports: ReportQueries {
  let time = ManualTime()
  private let count: Int64, millisecondsEach: Int64
  private let hasTimes: Bool
  private let done = Mutex<[ClosedRange<Int64>]>([])

  init(windows count: Int64, millisecondsEach: Int64, hasTimes: Bool = true) {
    (self.count, self.millisecondsEach, self.hasTimes) = (count, millisecondsEach, hasTimes)
  }

  var parts: [ClosedRange<Int64>] { done.withLock { $0 } }

  func read(_ part: ReportFilter) async throws(StoreFailure) -> Bool {
    guard let ids = part.ids else { return true }
    done.withLock { $0.append(ids) }
    time.advance(by: .milliseconds(millisecondsEach))
    return true
  }

  func windows(
    _ filter: ReportFilter, _ grouping: ReportGrouping?
  ) async throws(StoreFailure) -> [ClosedRange<Int64>] {
    (0..<count).reversed().map { $0 * 10 + 1...$0 * 10 + 10 }
  }
  func newestID() async throws(StoreFailure) -> Int64 { count * 10 }
  func first(from id: Int64) async throws(StoreFailure) -> (id: Int64, receivedTime: Int64)? {
    hasTimes ? (id, id) : nil
  }
  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) async throws(StoreFailure) -> [ReportCount] { [] }
  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) async throws(StoreFailure) -> (numbers: [ReportNumbers], from: Int64?) { ([], nil) }
  func streams(_: Scope, of device: String?, limit: Int) async throws(StoreFailure) -> [DeviceStream] { [] }
  func types(_: Scope, limit: Int) async throws(StoreFailure) -> [TypeName] { [] }
}
