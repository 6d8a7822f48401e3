import PrismProtocol
import Testing

@testable import PrismEngine

@Suite("What is known of failures")
struct RetryRecordTests {
  private let failure = RetryRecord.Failure(
    unixMilliseconds: 1_700_000_000_000, status: 503, cause: "status 503",
    collector: CollectorAddress("https://collector.test"))
  private func instant(_ uptime: Int, wallStep: Int64 = 0) -> Instant {
    Instant(uptime: .seconds(uptime), unixMilliseconds: 1_700_000_000_000 + Int64(uptime) * 1000 + wallStep)
  }

  private func record(_ failures: Int, retryAfter: Duration? = nil, reason: UploadState.Pause.Reason = .failure)
    -> RetryRecord
  {
    var record = RetryRecord()
    for _ in 0..<failures {
      // The largest draw of any ceiling.
      _ = record.failed(failure, reason: reason, retryAfter: retryAfter, random: 0, now: .seconds(100))
    }
    return record
  }

  @Test("failures in a row are counted, and a success ends them") func counts() {
    var record = record(7)
    #expect(record.failuresInRow == 7 && !record.isClean)
    record.succeeded()
    #expect(record.isClean && record.pause == nil)
    #expect(record.lastFailure == failure, "status still shows it")
  }

  @Test(
    "the pause that the collector asks for is kept, and a little more, with any backoff",
    arguments: [
      (Duration.seconds(1), Duration.milliseconds(100)), (.seconds(40), .seconds(4)), (.seconds(3600), .seconds(5)),
    ])
  func asked(retryAfter: Duration, jitter: Duration) {
    for random in [0, 12_345_678, UInt64.max] as [UInt64] {
      var record = record(9)
      let pause = record.failed(failure, reason: .held, retryAfter: retryAfter, random: random, now: .seconds(100))
      #expect(pause.reason == .asked)
      #expect((retryAfter...(retryAfter + jitter)).contains(pause.until - .seconds(100)))
    }
  }

  @Test("a wait of nothing is no request of the collector's: the backoff decides") func askedForNothing() {
    var record = RetryRecord()
    let pause = record.failed(failure, reason: .failure, retryAfter: .zero, random: 1_000_000, now: .zero)
    #expect(pause == .init(until: .seconds(1), reason: .failure))
  }

  @Test("its note brings all of it back after a restart, less the time that went by") func restart() throws {
    let kept = record(6, retryAfter: .seconds(60))
    let note = try #require(kept.note(now: instant(110), bootID: "b1"))
    let back = RetryRecord(note: note, now: instant(130), bootID: "b1")
    #expect(back.failuresInRow == 6 && back.lastFailure == failure)
    #expect(back.pause == .init(until: .milliseconds(160_001), reason: .asked), "50 s were left, 20 s went by")
    for (boot, uptime, until) in [("b2", 3, 50_001), ("", 3, 50_001), ("b1", 3, 50_001), ("b2", 130, 130_000)] {
      let later = RetryRecord(note: note, now: instant(uptime, wallStep: 86_400_000 * 20_000), bootID: boot)
      #expect(later.pause == .init(until: .milliseconds(until), reason: .asked), "\(uptime) s of \(boot) went by")
    }
    #expect(RetryRecord().note(now: instant(0)) == nil)
  }

  @Test(
    "a clock that was stepped makes no pause longer and no pause shorter",
    arguments: [-86_400_000 * 365, -1, 0, 49_000, 86_400_000 * 3650, .max / 2] as [Int64])
  func clockSteps(step: Int64) throws {
    let note = try #require(record(6, retryAfter: .seconds(60)).note(now: instant(110), bootID: "b1"))
    let back = RetryRecord(note: note, now: instant(110, wallStep: step), bootID: "b1")
    #expect(back.pause?.until == .seconds(160))
  }

  @Test("parts of a millisecond make no pause shorter", arguments: [1, 357, 643, 999])
  func partsOfMillisecond(microseconds: Int) throws {
    let part = Duration.microseconds(microseconds)
    var record = RetryRecord()
    let asked = record.failed(
      failure, reason: .failure, retryAfter: .seconds(60) + part, random: 0, now: .seconds(100))
    // The daemon restarts: 9.9991 s go by, and whole milliseconds say 10.
    let note = try #require(
      record.note(now: Instant(uptime: .seconds(100) + part, unixMilliseconds: 1_700_000_000_000)))
    let now = Duration.microseconds(109_999_100) + part
    let back = RetryRecord(note: note, now: Instant(uptime: now, unixMilliseconds: 1_700_000_010_000))
    #expect(try #require(back.pause).until >= asked.until)
  }

  @Test(
    "a damaged note is ignored, and holds nothing up for longer than an hour",
    arguments: [
      "", "{}", "[]", "x", #"{"failures":0}"#, #"{"failures":-4,"pauseMs":5}"#, #"{"failures":"6"}"#,
    ])
  func damaged(note: String) {
    #expect(RetryRecord(note: Array(note.utf8), now: instant(0)) == RetryRecord())
  }

  @Test("numbers beyond all reason in a note are bounded")
  func unreasonable() throws {
    let text = #"{"failures":9,"reason":"asked","pauseMs":\#(Int.max),"boot":"b1","sinceUptimeMs":\#(Int.min)}"#
    let back = RetryRecord(note: Array(text.utf8), now: instant(0))
    #expect(back.failuresInRow == 9)
    let pause = try #require(back.pause)
    #expect((Duration.zero ... .seconds(3605)).contains(pause.until))
  }
}
