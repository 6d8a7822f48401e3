import Glibc
import PrismBase
import PrismConfig
import PrismHTTP
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
      admission.count("one")
    }
    let seconds = wait(admission, "one")
    #expect((10...13).contains(seconds ?? 0), "one in ten seconds, and a quarter of jitter: \(seconds ?? 0)")
    #expect(wait(admission, "two") == nil)
    time.advance(by: .seconds(10))
    #expect(wait(admission, "one") == nil)
    admission.count("one")
    #expect(wait(admission, "one") != nil)
  }

  @Test("asking counts nothing: a stranger who names a device uses nothing up")
  func strangers() {
    let admission = admission { ($0.devicePacketsPerMinute, $0.packetsPerMinute) = (1, 1) }
    for _ in 0..<1000 { #expect(wait(admission, "one") == nil) }
  }

  @Test("a device that used its day up is refused until that ends, and asks again within an hour and a quarter")
  func perDay() {
    let admission = admission { _ in }
    let overdraft = Overdraft(name: "one", limit: .rows, max: 5, wait: .seconds(50_000))
    admission.note(overdraft)
    admission.note(Overdraft(name: "shop", limit: .reports, max: 5, wait: .seconds(300)))
    #expect((3600...4500).contains(wait(admission, "one") ?? 0))
    #expect(wait(admission, "shop") == nil && admission.limitedCount == 1)
    time.advance(by: .seconds(49_999))
    #expect(throws: CollectorRefusal.self) { try admission.check("one") }
    time.advance(by: .seconds(1))
    #expect(wait(admission, "one") == nil && admission.limitedCount == 0)
  }

  @Test("all devices share a limit of their own")
  func together() {
    let admission = admission { $0.packetsPerMinute = 60 }
    for number in 0..<60 { admission.count("d\(number)") }
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

  @Test("a fleet.db that is gone beside the packets of devices is said: it held who is revoked")
  func lostFleet() async throws {
    let rig = StoreRig()
    func warnings(afterTaking packet: OpenedPacket? = nil) async throws -> [String] {
      let options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
      let collector = try Collector(options, time: rig.time, log: rig.log)
      let devices = try await collector.store.deviceCount()
      collector.devices.begin(devices: devices, rig.log)
      if let packet { _ = try await collector.store.take(packet) }
      let answer = await collector.health(PageRig.request("/healthz"))
      await collector.close()
      return String(decoding: answer.body, as: UTF8.self).split(separator: "\n").dropFirst().map(String.init)
    }
    #expect(try await warnings(afterTaking: StoreRig.packet([1])).isEmpty, "the first start of all")
    #expect(try await warnings().isEmpty)
    unlink(rig.path + "/fleet.db")
    let said = try await warnings()
    #expect(
      said.count == 1 && said.first?.hasPrefix("fleet.db was missing: revoked devices are let in") == true, "\(said)")
  }
}
