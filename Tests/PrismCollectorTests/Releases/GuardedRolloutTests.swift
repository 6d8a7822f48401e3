import Foundation
import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// A rollout that ends itself, from the reports of devices to the event in the shared database.
@Suite struct GuardedRolloutTests {
  private final class Rig: Sendable {
    let path = TemporaryFolder.make()
    let time = ManualTime(unixMilliseconds: 1_800_000_000_000)
    let collector: Collector

    init() throws {
      let next = path + "/remote.d/next"
      try FileManager.default.createDirectory(atPath: next, withIntermediateDirectories: true)
      try "maxItem: 5\n".write(toFile: path + "/remote.d/shop.yaml", atomically: true, encoding: .utf8)
      try "maxItem: 6\n".write(toFile: next + "/shop.yaml", atomically: true, encoding: .utf8)
      try "sender-token-of-tests\n".write(toFile: path + "/senders", atomically: true, encoding: .utf8)
      time.advance(by: .seconds(3))
      var options = CollectorOptions(state: path, keys: ["main": CollectorTests.key])
      options.remote = CollectorOptions.Remote(folder: path + "/remote.d")
      options.tokenFile = path + "/senders"
      collector = try Collector(options, time: time, log: Logger(write: { _ in }))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }  // a left folder harms no test

    @discardableResult func change(_ body: String, status: Int = 200) async throws -> JSONValue {
      time.advance(by: .seconds(3))
      let answer = await collector.answerReader(
        PageRig.request(
          "/api/v1/configuration/rollout", method: .post, headers: [("content-type", "application/json")], body: body),
        isOwner: true)
      #expect(answer.status == status, "\(String(decoding: answer.body, as: UTF8.self))")
      return try JSONValue(parsing: answer.body)
    }

    func configuration() async throws -> JSONValue {
      try JSONValue(
        parsing: await collector.answerReader(PageRig.request("/api/v1/configuration"), isOwner: true).body)
    }

    /// The device takes what it is offered, and says so.
    func ask(_ device: String) async throws {
      var since: Int64?
      for _ in 0..<2 {
        let query =
          [(name: "deviceId", value: device)] + (since.map { [(name: "updateTime", value: String($0))] } ?? [])
        let answer = await collector.answer(
          PageRig.request("/prism/config", query, headers: [("authorization", "Bearer sender-token-of-tests")]))
        since = try RemoteDocument(parsing: try RemoteEnvelope.open(answer.body, publicKey: nil)).updateTime
      }
    }

    /// One hour of all devices; those that are chosen crash in it.
    func hour(_ number: Int, of devices: [String], crashing: Set<String>) async throws {
      time.advance(by: .seconds(3600))
      for device in devices {
        let packet = try ReleaseTests.hour(
          device, number, of: "1.0", at: time.unixMilliseconds, crashes: crashing.contains(device) ? 1 : 0)
        _ = try await collector.store.take(packet)
      }
      time.advance(by: .seconds(700))
    }
  }

  @Test(
    "a rollout whose devices crash is rolled back or paused by itself, says why, and other replicas agree",
    arguments: ["rollBack", "pause"])
  func ends(action: String) async throws {
    let rig = try Rig()
    let devices = (0..<40).map { "till-\($0)" }
    let begun = try await rig.change(
      #"{"action":"start","percent":0,"groups":["till-1*"],"guard":{"hours":5,"action":"\#(action)","app":"pos"}}"#)
    #expect(begun["guard"]?["state"]?["verdict"] == "notEnoughData" && begun["guard"]?["worse"] == 10)
    for device in devices { try await rig.ask(device) }
    rig.time.advance(by: .seconds(2))
    let chosen = Set(devices.filter { $0.hasPrefix("till-1") })
    let watch = GuardWatch()
    for number in 1...3 {
      try await rig.hour(number, of: devices, crashing: number == 1 ? [] : chosen)
      _ = try await watch.look(rig.collector)
      if number == 1 { #expect(try await rig.configuration()["rollout"]?["state"] == "running") }
    }
    let found = try await rig.configuration()
    let event = try #require(found["history"]?.array?.first)
    #expect(event["state"]?.string == (action == "pause" ? "paused" : "rolledBack"))
    #expect(event["who"]?.string?.hasPrefix("guard: crashFreeHours: 11 of 11 chosen devices crashed") == true)
    let other = GuardWatch()
    _ = try await other.look(rig.collector)
    #expect(try await rig.configuration()["history"]?.array?.count == 2, "it is decided once")
    guard action == "pause" else { return }
    try await rig.change(#"{"action":"resume"}"#)
    _ = try await watch.look(rig.collector)
    #expect(
      try await rig.configuration()["rollout"]?["state"] == "running", "an operator went on: it begins to count again")
  }

  @Test("reports of a type end a rollout, too: of each device until its first one, beside the hours of all devices")
  func reports() async throws {
    let rig = try Rig()
    let devices = (0..<40).map { "till-\($0)" }
    try await rig.change(
      #"{"action":"start","percent":0,"groups":["till-1*"],"guard":{"hours":5,"rate":"reports","type":"lag"}}"#)
    for device in devices { try await rig.ask(device) }
    rig.time.advance(by: .seconds(2))
    let watch = GuardWatch()
    for number in 1...3 {
      for device in devices where number > 1 && device.hasPrefix("till-1") {
        rig.time.advance(by: .seconds(1))
        for lag in 0..<7 {
          _ = try await rig.collector.store.take(
            try ReleaseTests.event(device, "lag", number * 10 + lag, at: rig.time.unixMilliseconds))
        }
      }
      try await rig.hour(number, of: devices, crashing: number == 1 ? Set(devices) : [])
      while try await watch.look(rig.collector) {}
      if number == 1 { #expect(try await rig.configuration()["rollout"]?["state"] == "running") }
    }
    let event = try #require(try await rig.configuration()["history"]?.array?.first)
    #expect(event["state"] == "rolledBack")
    #expect(
      event["who"]?.string?.hasPrefix("guard: reports of lag: 11 of 11 chosen devices sent one") == true, "\(event)")
  }

  @Test("a guard belongs to the start, and one with a fault starts nothing") func refused() async throws {
    let rig = try Rig()
    try await rig.change(#"{"action":"start","percent":5,"guard":{"worse":5000}}"#, status: 400)
    #expect(try await rig.configuration()["rollout"] == .null)
    try await rig.change(#"{"action":"start","percent":5}"#)
    try await rig.change(#"{"action":"widen","percent":6,"guard":{}}"#, status: 400)
    #expect(try await rig.configuration()["rollout"]?["guard"] == .null)
    #expect(try await GuardWatch().look(rig.collector) == false)
  }
}
