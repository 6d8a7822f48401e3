import PrismBase
import PrismHTTP
import PrismOutputs
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("A slow upload")
struct SlowUploadTests {
  private let folder = TemporaryFolder()

  @Test("the head of a packet tells whether its device's clock is wrong, however long the body takes")
  func slow() async throws {
    let time = ManualTime()
    let options = CollectorOptions(state: folder.path, keys: ["main": CollectorTests.key])
    let collector = try Collector(options, time: time, log: Logger(write: { _ in }))
    var request = try CollectorTests.request(
      CollectorTests.context(.meta), metas: [#"{"CREATE_TIME":1000}"#], sentTime: time.unixMilliseconds)
    request.headTime = time.uptime
    time.advance(by: .seconds(100))
    #expect(await collector.answer(request).status == 200)
    // The whole packet comes 100 s later than its device says.
    let late = try CollectorTests.request(
      CollectorTests.context(.meta), metas: [#"{"CREATE_TIME":1000}"#], sentTime: time.unixMilliseconds - 100_000)
    #expect(await collector.answer(late).status == 200)
    #expect(try await collector.store.page(ReportFilter(scope: .everything)).map(\.createdTime) == [1000, 101_000])
  }

  @Test(
    "PostgreSQL: a replica whose clock is wrong shifts no report: the database's clock judges those of devices",
    arguments: [-10_800_000, 10_800_000] as [Int64])
  func wrongReplica(milliseconds: Int64) async throws {
    let (rig, time) = (try await PostgreSQLRig(), ManualTime())
    time.stepWallClock(milliseconds: SystemTime().unixMilliseconds - time.unixMilliseconds + milliseconds)
    var options = CollectorOptions(state: folder.path, keys: ["main": CollectorTests.key])
    options.store = try PostgreSQLTarget(uri: rig.server.uri(rig.database))
    let collector = try Collector(options, time: time, log: Logger(write: { _ in }))
    _ = try await collector.store.maintain()
    for behind in [0, 100_000] as [Int64] {
      let request = try CollectorTests.request(
        CollectorTests.context(.meta), metas: [#"{"CREATE_TIME":1000}"#],
        sentTime: SystemTime().unixMilliseconds - behind)
      #expect(await collector.answer(request).status == 200)
    }
    let times = try await collector.store.page(ReportFilter(scope: .everything)).compactMap(\.createdTime)
    #expect(times.first == 1000)
    #expect(times.count == 2 && abs(times[1] - 101_000) < 30_000)
    await collector.store.close()
  }
}
