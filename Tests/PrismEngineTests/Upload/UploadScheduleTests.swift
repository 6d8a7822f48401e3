import Testing

@testable import PrismEngine

@Suite("When an upload is due")
struct UploadScheduleTests {
  private let now: Duration = .seconds(1000), interval: Duration = .seconds(10)

  private func schedule(_ requests: UploadSchedule.UploadRequest..., random: UInt64 = 0) -> UploadSchedule {
    var schedule = UploadSchedule()
    for request in requests { schedule.requestUpload(request, now: now, interval: interval, random: random) }
    return schedule
  }

  private func delay(_ schedule: UploadSchedule, spacing: Duration? = nil) -> Duration? {
    schedule.due(spacing: spacing).map { $0 - now }
  }

  @Test("without a request, nothing is due") func idle() { #expect(delay(UploadSchedule()) == nil) }

  @Test(
    "each request has its time, with the least and the most jitter",
    arguments: [
      (.rows, .seconds(10), .seconds(8)), (.realtime, .seconds(2), .seconds(2)), (.crash, .seconds(2), .seconds(2)),
      (.network, .zero, .seconds(2)), (.start, .zero, .zero), (.flush, .zero, .zero),
    ] as [(UploadSchedule.UploadRequest, Duration, Duration)])
  func time(request: UploadSchedule.UploadRequest, least: Duration, most: Duration) {
    #expect(delay(schedule(request, random: 0)) == least)
    #expect(delay(schedule(request, random: 2_000_000)) == most, "rows: a fifth earlier at most")
  }

  @Test("several requests are one upload, at the earliest of their times") func merged() {
    var merged = schedule(.rows, .realtime, .rows, .crash)
    #expect(delay(merged) == .seconds(2))
    merged.begin(now: now + .seconds(2))
    #expect(delay(merged) == nil)
  }

  @Test("a later request never moves an upload that is due before") func neverLater() {
    var early = schedule(.realtime)
    early.requestUpload(.realtime, now: now + .seconds(1), interval: interval, random: 0)
    early.requestUpload(.rows, now: now + .seconds(1), interval: interval, random: 0)
    #expect(delay(early) == .seconds(2))
  }

  @Test(
    "on metered networks the interval holds back all but crashes, starts and flushes",
    arguments: [
      (.rows, .seconds(60)), (.realtime, .seconds(60)), (.network, .seconds(60)), (.crash, .seconds(7)),
      (.start, .seconds(5)), (.flush, .seconds(5)),
    ] as [(UploadSchedule.UploadRequest, Duration)])
  func spacing(request: UploadSchedule.UploadRequest, expected: Duration) {
    var schedule = UploadSchedule()
    schedule.begin(now: now)
    schedule.requestUpload(request, now: now + .seconds(5), interval: interval, random: 0)
    #expect(delay(schedule, spacing: .seconds(60)) == expected)
  }

  @Test("the first upload is not held back by an interval") func first() {
    #expect(delay(schedule(.rows), spacing: .seconds(60)) == .seconds(10))
  }
}
