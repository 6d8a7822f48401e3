import PrismConfig
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("How much a device may send, and when")
struct DeviceAdmissionTests {
  private let time = ManualTime()

  private func admission(_ change: (inout CollectorConfiguration.Limits) -> Void) -> DeviceAdmission {
    var limits = CollectorConfiguration.Limits()
    change(&limits)
    return DeviceAdmission(limits, time: time)
  }

  /// - Returns: the seconds after which it may ask again; nil: it may send.
  private func wait(_ admission: DeviceAdmission, _ device: String) -> Int? {
    do throws(CollectorRefusal) {
      try admission.check(device)
      return nil
    } catch {
      #expect(error.status == 429)
      return error.retryAfterSeconds ?? 0
    }
  }

  @Test("a device sends as many packets a minute as it may, and then at that rate; others are not concerned")
  func perMinute() {
    let admission = admission { $0.devicePacketsPerMinute = 6 }
    for _ in 0..<6 {
      #expect(wait(admission, "one") == nil)
      admission.count("one", .init(rows: 1, bytes: 1))
    }
    let seconds = wait(admission, "one")
    #expect((10...13).contains(seconds ?? 0), "one in ten seconds, and a quarter of jitter: \(seconds ?? 0)")
    #expect(wait(admission, "two") == nil)
    time.advance(by: .seconds(10))
    #expect(wait(admission, "one") == nil)
    admission.count("one", .init(rows: 1, bytes: 1))
    #expect(wait(admission, "one") != nil)
  }

  @Test("asking counts nothing: a stranger who names a device uses nothing up")
  func strangers() {
    let admission = admission { ($0.devicePacketsPerMinute, $0.packetsPerMinute) = (1, 1) }
    for _ in 0..<1000 { #expect(wait(admission, "one") == nil) }
  }

  @Test(
    "a device's rows and bytes within 24 hours are bounded, the answer says until when, and it asks within an hour and a quarter",
    arguments: [(rows: 999, bytes: 1, more: (1, 0)), (1, 999, (0, 1))])
  func perDay(rows: Int, bytes: Int, more: (rows: Int, bytes: Int)) {
    let admission = admission { ($0.deviceRowsPerDay, $0.deviceBytesPerDay) = (1000, 1000) }
    admission.count("one", .init(rows: rows, bytes: bytes))
    #expect(wait(admission, "one") == nil && admission.limitedCount == 0)
    time.advance(by: .seconds(3600))
    admission.count("one", .init(rows: more.rows, bytes: more.bytes))
    #expect((3600...4500).contains(wait(admission, "one") ?? 0))
    #expect(wait(admission, "two") == nil && admission.limitedCount == 1)
    let day = admission.day(of: "one")
    #expect(day?["leftSeconds"] == 82_800 && day?["isLimited"] == true && day?["rowsMax"] == 1000)
    #expect(day?["rows"]?.int == rows + more.rows && day?["bytes"]?.int == bytes + more.bytes)
    #expect(admission.day(of: "two") == nil)
    do { try admission.check("one") } catch { #expect(error.message.contains("82800 s"), "\(error.message)") }
    time.advance(by: .seconds(82_000))
    #expect((800...1001).contains(wait(admission, "one") ?? 0), "until the day ends")
    time.advance(by: .seconds(801))
    #expect(wait(admission, "one") == nil && admission.limitedCount == 0)
    #expect(admission.day(of: "one")?["rows"] == 0)
  }

  @Test("the day has 24 hours by the time since the start, and no step of the wall clock changes it")
  func clockSteps() {
    let admission = admission { $0.deviceRowsPerDay = 5 }
    admission.count("one", .init(rows: 5, bytes: 1))
    for days in [-4000, 8000, -1] as [Int64] {
      time.stepWallClock(milliseconds: days * 86_400_000)
      #expect((3600...4500).contains(wait(admission, "one") ?? 0))
    }
    time.advance(by: .seconds(86_400))
    #expect(wait(admission, "one") == nil)
  }

  @Test("by default a device sends a million rows and a GiB a day") func defaults() {
    let limits = CollectorConfiguration.Limits()
    #expect(limits.deviceRowsPerDay == 1_000_000 && limits.deviceBytesPerDay == 1 << 30)
  }

  @Test("all devices share a limit of their own")
  func together() {
    let admission = admission { $0.packetsPerMinute = 60 }
    for number in 0..<60 { admission.count("d\(number)", .init(rows: 1, bytes: 1)) }
    #expect(wait(admission, "new") != nil)
    time.advance(by: .seconds(1))
    #expect(wait(admission, "new") == nil)
  }

  @Test("after a start a fleet is let in at its rate, each device keeps its place, and a small fleet never waits")
  func ramp() {
    let admission = admission { $0.startDevicesPerSecond = 100 }
    admission.begin(devices: 1000)
    let devices = (0..<1000).map { "device-\($0)" }
    var before = devices.filter { wait(admission, $0) == nil }
    #expect(before.count < 50)
    for second in 1...10 {
      time.advance(by: .seconds(1))
      let now = devices.filter { wait(admission, $0) == nil }
      #expect(Set(before).isSubset(of: now))
      #expect((second * 100 - 60...second * 100 + 60).contains(now.count), "\(now.count) after \(second) s")
      before = now
    }
    #expect(before.count == 1000)
    admission.begin(devices: 100)
    #expect(devices.allSatisfy { wait(admission, $0) == nil })
  }
}
