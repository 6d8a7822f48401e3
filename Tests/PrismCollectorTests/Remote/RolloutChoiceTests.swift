import Foundation
import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

@Suite("Rollouts to the devices of an expression", .timeLimit(.minutes(2)))
struct RolloutChoiceTests {
  /// A collector that serves a folder, with devices that sent something.
  private final class Rig {
    let rig = StoreRig()
    private(set) var collector: Collector
    private var times: [String: Int64] = [:]

    init() async throws {
      try FileManager.default.createDirectory(atPath: rig.path + "/remote.d/next", withIntermediateDirectories: true)
      for (file, number) in [("shop", 1), ("next/shop", 2)] {
        try "monitorList: [{type: a}]\nmaxItem: \(number)\n"
          .write(toFile: rig.path + "/remote.d/\(file).yaml", atomically: true, encoding: .utf8)
      }
      collector = try Self.collector(rig)
      for (number, device) in ["a", "b", "c"].enumerated() {
        var random = SeededRandom(seed: UInt64(number + 1))
        let context = PacketContext(
          deviceID: device, namespace: .prism,
          packetID: PacketID(unixMilliseconds: rig.time.unixMilliseconds, using: &random), kind: .meta)
        let meta = #"{"MONITOR_TYPE":"net","APP_NAME":"till","APP_VERSION":"1.\#(number)"}"#
        let request = try CollectorTests.request(context, metas: [meta], sentTime: rig.time.unixMilliseconds)
        #expect(await collector.answer(request).status == 200)
      }
    }

    private static func collector(_ rig: StoreRig) throws -> Collector {
      var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
      options.remote = CollectorOptions.Remote(folder: rig.path + "/remote.d")
      return try Collector(options, time: rig.time, log: rig.log)
    }

    func restart() async throws {
      await collector.close()
      collector = try Self.collector(rig)
    }

    func change(_ path: String, _ body: String, _ query: [(name: String, value: String)] = [], put: Bool = false) async
      -> HTTPResponse
    {
      rig.time.advance(by: RolloutChoices.interval)
      return await collector.answerReader(
        PageRig.request(
          "/api/v1" + path, query, method: put ? .put : .post, headers: [("content-type", "application/json")],
          body: body), isOwner: true)
    }

    func rollOut(_ body: String) async throws -> JSONValue {
      let answer = await change("/configuration/rollout", body)
      #expect(answer.status == 200, "\(body) \(String(decoding: answer.body, as: UTF8.self))")
      return try JSONValue(parsing: answer.body)
    }

    func tag(_ device: String, _ region: String) async {
      let answer = await change(
        "/records/prism/prism.tags/operator", #"{"region":"\#(region)"}"#, [("device", device)], put: true)
      #expect([200, 201].contains(answer.status))
    }

    /// The devices that get what is rolled out, when all ask now. - Parameter fromNothing: they forgot what they had.
    func holders(fromNothing: Bool = false) async throws -> String {
      var found = ""
      for device in ["a", "b", "c", "stranger"] {
        let since = fromNothing ? nil : times[device]
        let query = [(name: "deviceId", value: device)] + (since.map { [("updateTime", "\($0)")] } ?? [])
        let answer = await collector.answer(PageRig.request("/prism/config", query))
        let document = try RemoteDocument(parsing: try RemoteEnvelope.open(answer.body, publicKey: nil))
        times[device] = document.updateTime
        if document.updateTime & 1 == 1 { found += device }
      }
      return found
    }
  }

  @Test("devices of the expression get it, those that have it keep it, and a device that comes to be of it gets it too")
  func tags() async throws {
    let rig = try await Rig()
    for (device, region) in [("a", "eu"), ("b", "us")] { await rig.tag(device, region) }
    let begun = try await rig.rollOut(#"{"action":"start","percent":100,"where":"tag.region = eu"}"#)
    #expect(begun["where"] == "tag.region = eu" && begun["percent"] == 100)
    #expect(try await rig.holders() == "a")
    await rig.tag("b", "eu")
    await rig.tag("a", "us")
    rig.rig.time.advance(by: RolloutChoices.interval)
    #expect(try await rig.holders() == "ab", "the first one keeps it")
    try await rig.restart()
    #expect(try await rig.holders() == "ab")
    #expect(try await rig.holders(fromNothing: true) == "b", "one that has nothing is asked about as any other")
    _ = try await rig.rollOut(#"{"action":"widen","percent":100}"#)
    #expect(try await rig.holders() == "b", "the expression stays")
    let wider = try await rig.rollOut(#"{"action":"widen","percent":100,"where":""}"#)
    #expect(wider["where"] == .null)
    #expect(try await rig.holders() == "abcstranger")
    await rig.collector.close()
  }

  @Test("versions and silence choose, a percentage is of the devices of the expression, and ids come besides")
  func facts() async throws {
    let rig = try await Rig()
    _ = try await rig.rollOut(
      #"{"action":"start","percent":100,"where":"version < 1.2 and seen < 1h","groups":["str*"]}"#)
    #expect(try await rig.holders() == "abstranger")
    _ = try await rig.rollOut(#"{"action":"rollBack"}"#)
    #expect(try await rig.holders() == "")
    let shown = try await rig.rollOut(#"{"action":"start","percent":0,"where":"version < 1.2","groups":["c"]}"#)
    #expect(try await rig.holders() == "c" && shown["where"] == "version < 1.2")
    _ = try await rig.rollOut(#"{"action":"rollBack"}"#)
    rig.rig.time.advance(by: .seconds(7200))
    _ = try await rig.rollOut(#"{"action":"start","percent":100,"where":"seen < 1h"}"#)
    #expect(try await rig.holders() == "", "no device was heard of for two hours")
    await rig.collector.close()
  }

  @Test(
    "an expression that is at fault is refused with its place",
    arguments: ["tag.region =", "colour = red", "(", "7", "tag.<b> = x", "tag.a\u{1B}b"])
  func faults(text: String) async throws {
    let rig = try await Rig()
    let expression: JSONValue = text == "7" ? 7 : .string(text)
    let answer = await rig.change(
      "/configuration/rollout", JSONValue(["action": "start", "percent": 10, "where": expression]).text)
    #expect(answer.status == 400 && String(decoding: answer.body, as: UTF8.self).contains("where:"))
    await rig.collector.close()
  }

  @Test("a replica of an earlier version, which knows no expressions, finds a share of 0 and no ids")
  func earlierVersion() async throws {
    let rig = try await Rig()
    _ = try await rig.rollOut(#"{"action":"start","percent":90,"where":"tag.region = eu"}"#)
    await rig.collector.close()
    let text = try #require(
      try FleetSession(.folder(rig.rig.path)).read { statements in
        try statements.integer("SELECT percent FROM rollout_events")
      })
    #expect(text == 0)
    let found = try FleetSession(.folder(rig.rig.path)).read { try RolloutHistory($0).newest?.event.reach }
    #expect(found == Rollout.Reach(percent: 90, groups: [], expression: "tag.region = eu"))
  }

  @Test("an attribute that a device lacks chooses it by no comparison, and one that sent no packet is not chosen")
  func missing() async throws {
    let rig = try await Rig()
    await rig.tag("a", "eu")
    _ = try await rig.rollOut(#"{"action":"start","percent":100,"where":"tag.region != us"}"#)
    #expect(try await rig.holders() == "a")
    _ = try await rig.rollOut(#"{"action":"rollBack"}"#)
    _ = try await rig.rollOut(#"{"action":"start","percent":100,"where":"not tag.region = eu"}"#)
    #expect(try await rig.holders() == "bc")
    await rig.collector.close()
  }

  @Test("devices of another expression, or devices that were never read, choose no device")
  func otherExpression() {
    let reach = Rollout.Reach(percent: 100, groups: ["lab-*"], expression: "tag.region = eu")
    let other = DeviceChoice(expression: "tag.region = us", devices: ["d"])
    for chosen in [nil, other] {
      #expect(!reach.includes("d", of: 1, among: chosen))
      #expect(reach.includes("lab-1", of: 1, among: chosen))
    }
    #expect(reach.includes("d", of: 1, among: DeviceChoice(expression: "tag.region = eu", devices: ["d"])))
    #expect(Rollout.Reach(percent: 100).includes("d", of: 1, among: other))
  }

  @Test("1,000 questions at once look at the fleet once in 10 s; where it can't be read, the devices of before stay")
  func cost() async {
    let (choices, reads) = (RolloutChoices(), Counter())
    @Sendable func ask(_ seconds: Int, _ expression: String = "e", isReadable: Bool = true) async -> Set<String>? {
      await choices.devices(of: expression, now: .seconds(seconds)) {
        let number = reads.next()
        return isReadable ? DeviceChoice(expression: expression, devices: ["\(number)"]) : nil
      }?.devices
    }
    await withTaskGroup(of: Set<String>?.self) { group in
      for _ in 0..<1000 { group.addTask { await ask(1) } }
      for await found in group { #expect(found == ["1"]) }
    }
    #expect(await ask(10) == ["1"])
    #expect(await ask(11, isReadable: false) == ["1"], "it can't be read")
    #expect(await ask(20) == ["1"], "a failure is not tried again at once")
    #expect(await ask(21) == ["3"])
    #expect(await ask(21, "f") == ["4"])
    #expect(reads.count == 4)
  }
}

private final class Counter: Sendable {
  private let state = Mutex(0)
  var count: Int { state.withLock { $0 } }

  func next() -> Int {
    state.withLock { count in
      count += 1
      return count
    }
  }
}
