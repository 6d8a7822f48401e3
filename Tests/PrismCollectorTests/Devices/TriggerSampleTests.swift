import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Which devices send for a trigger (docs/recorder.md, "A sample of the fleet").
@Suite("A sample of the fleet", .timeLimit(.minutes(3))) struct TriggerSampleTests {
  private let rig = StoreRig()
  private static let shop = NamespaceName("shop")!

  /// - Parameter behind: the second one's clock, in milliseconds.
  private func replicas(_ kind: StoreRig.Fleet, behind: Int64 = 0) async throws -> [TriggerSample] {
    let (fleet, other) = (try await rig.fleet(kind), ManualTime())
    try fleet.prepare()  // as a collector does, before anything else opens it
    other.stepWallClock(milliseconds: -behind)
    return [TriggerSample(fleet, time: rig.time), TriggerSample(fleet, time: behind == 0 ? rig.time : other)]
  }

  @Test("of devices that ask at once no more send than may, over two replicas", arguments: StoreRig.Fleet.allCases)
  func counted(kind: StoreRig.Fleet) async throws {
    let replicas = try await replicas(kind)
    func ask(_ round: Range<Int>) async throws -> Set<Int> {
      try await withThrowingTaskGroup(of: (Int, Bool).self) { group in
        for number in round {
          group.addTask {
            (number, try await replicas[number % 2].admits("d\(number)", "crash", of: Self.shop, 7))
          }
        }
        return try await group.reduce(into: []) { if $1.1 { $0.insert($1.0) } }
      }
    }
    let first = try await ask(0..<40)
    #expect(first.count == 7)
    #expect(try await ask(0..<40) == first, "a device that asks twice has the same answer")
    #expect(try await ask(40..<60).isEmpty)
    #expect(try await replicas[0].admits("d99", "slow", of: Self.shop, 1), "another trigger")
    #expect(try await replicas[1].admits("d99", "crash", of: .prism, 1), "another namespace")
    rig.time.advance(by: .seconds(24 * 3600 + 1))
    #expect(try await ask(40..<60).count == 7, "a place whose device never sent is free again")
    #expect(try await ask(0..<40).isEmpty)
  }

  @Test("a limit that is raised lets more devices send, and one that is lowered takes no place away")
  func changed() async throws {
    let sample = try await replicas(.sqlite)[0]
    for number in 0..<4 {
      #expect(try await sample.admits("d\(number)", "c", of: Self.shop, 3) == (number < 3))
    }
    #expect(try await sample.admits("d3", "c", of: Self.shop, 4))
    #expect(try await sample.admits("d0", "c", of: Self.shop, 1))
    #expect(try await sample.admits("d4", "c", of: Self.shop, 1) == false)
  }

  @Test("replicas whose clocks differ by less than a day count together, and a clock that was wrong ends no sample")
  func clocks() async throws {
    let hours: Int64 = 3_600_000
    let replicas = try await replicas(.sqlite, behind: 23 * hours)
    for number in 0..<6 {
      #expect(try await replicas[number % 2].admits("d\(number)", "c", of: Self.shop, 3) == (number < 3))
    }
    let now = rig.time.unixMilliseconds
    rig.time.stepWallClock(milliseconds: -now)  // 1970
    #expect(try await replicas[0].admits("d6", "c", of: Self.shop, 1))
    #expect(try await replicas[0].admits("d7", "c", of: Self.shop, 1) == false)
    rig.time.stepWallClock(milliseconds: now)
    #expect(try await replicas[0].admits("d7", "c", of: Self.shop, 1))
    rig.time.stepWallClock(milliseconds: 100 * 365 * 24 * hours)
    #expect(try await replicas[0].admits("d8", "far", of: Self.shop, 1))
    rig.time.stepWallClock(milliseconds: -100 * 365 * 24 * hours)
    #expect(try await replicas[0].admits("d9", "far", of: Self.shop, 1), "not in 100 years")
  }

  @Test("a namespace whose triggers are too many is counted for some, and has room again after a day")
  func full() async throws {
    let sample = try await replicas(.sqlite)[0]
    for number in 0..<TriggerSample.rulesMax {
      #expect(try await sample.outcome(of: "d", for: "r\(number)", in: Self.shop, devicesMax: 1) == .leaves)
    }
    func more() async throws -> TriggerSample.Outcome {
      try await sample.outcome(of: "e", for: "more", in: Self.shop, devicesMax: 1)
    }
    #expect(try await more() == .uncounted)
    #expect(try await sample.outcome(of: "e", for: "r1", in: Self.shop, devicesMax: 1) == .enough)
    #expect(try await sample.outcome(of: "e", for: "more", in: .prism, devicesMax: 1) == .leaves)
    rig.time.advance(by: .seconds(24 * 3600 + 1))
    #expect(try await more() == .leaves)
  }

  // MARK: POST /prism/intent

  private static func body(_ change: (inout IntentQuestion) -> Void = { _ in }) -> [UInt8] {
    var question = IntentQuestion()
    (question.device, question.namespace, question.keyID) = ("d1", "shop", "main")
    (question.cipher, question.nonce, question.rule) = (Cipher.aes128GCM.rawValue, "n1", "crash")
    (question.devices, question.reports, question.bytes) = (1, 5, 500)
    change(&question)
    return Array(question.controlJSON.text.utf8)
  }

  private static func request(_ body: [UInt8], key: Secret = CollectorTests.key) throws -> HTTPRequest {
    HTTPRequest(
      method: .post, path: IntentQuestion.path,
      headers: [(name: "prism-mac", value: try ProbeCode(key: key, for: .intent).ofQuestion(body))], body: body,
      peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
  }

  private func collector(_ change: (inout CollectorOptions) -> Void = { _ in }) throws -> Collector {
    var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
    options.keyRules["main"] = KeyRule()
    options.keyRules["main"]?.namespaces = ["shop"]
    change(&options)
    return try Collector(options, time: rig.time, log: rig.log)
  }

  @Test("a device that proves its key has an answer that is proved, too, and both outcomes are counted")
  func answers() async throws {
    let collector = try collector()
    for (device, leaves) in [("d1", true), ("d2", false), ("d1", true)] {
      let response = await collector.answer(try Self.request(Self.body { $0.device = device }))
      #expect(response.status == 200)
      #expect(IntentAnswer(controlJSON: try JSONValue(parsing: response.body)).leaves == leaves, "\(device)")
      let code = try ProbeCode(key: CollectorTests.key, for: .intent)
      #expect(
        response.headers.first { $0.name == "Prism-Mac" }?.value
          == (try code.ofAnswer(response.body, nonce: "n1")))
    }
    let metrics = await collector.metrics
    #expect(metrics.contains(#"prism_collector_intents_total{outcome="leaves"} 2"#))
    #expect(metrics.contains(#"prism_collector_intents_total{outcome="enough"} 1"#))
    await collector.close()
  }

  @Test("a question of another key, of a probe's code, or that can't be read takes no device's place")
  func refused() async throws {
    let collector = try collector()
    let other = Secret([UInt8](repeating: 9, count: 16))
    #expect(await collector.answer(try Self.request(Self.body(), key: other)).status == 403)
    var probe = try Self.request(Self.body())
    probe.headers = [("prism-mac", try ProbeCode(key: CollectorTests.key).ofQuestion(probe.body))]
    #expect(await collector.answer(probe).status == 403)
    let changes: [(Int, (inout IntentQuestion) -> Void)] = [
      (401, { $0.keyID = "x" }), (403, { $0.namespace = "other" }), (400, { $0.devices = 0 }),
      (400, { $0.rule = String(repeating: "r", count: 129) }), (400, { $0.device = "" }),
      (400, { $0.cipher = "rot13" }),
      (400, { $0.nonce = "" }),
    ]
    for (status, change) in changes {
      #expect(await collector.answer(try Self.request(Self.body(change))).status == status)
    }
    #expect(await collector.answer(try Self.request(Array("[".utf8))).status == 400)
    #expect(await collector.answer(try Self.request(Self.body())).status == 200, "the one place is free")
    await collector.close()
  }

  @Test("a device's key proves no question of another device, and a question that comes again takes one place")
  func others() async throws {
    let master = Secret([UInt8](repeating: 7, count: 32))
    let collector = try collector {
      $0.keys["main"] = master
      $0.keyRules["main"]?.derivesForDevice = true
      $0.limits.devicePacketsPerMinute = 3
    }
    func key(_ device: String) throws -> Secret {
      try DeviceKey.derived(master: master, keyID: "main", deviceID: device, cipher: .aes128GCM)
    }
    func answer(_ device: String, by other: String) async throws -> HTTPResponse {
      let body = Self.body { ($0.device, $0.devices) = (device, 2) }
      return await collector.answer(try Self.request(body, key: try key(other)))
    }
    #expect(try await answer("d1", by: "d2").status == 403)
    for _ in 0..<3 { #expect(try await answer("d1", by: "d1").status == 200) }
    #expect(try await answer("d1", by: "d1").status == 429, "it counts as a packet does")
    for (device, leaves) in [("d2", true), ("d3", false)] {
      let response = try await answer(device, by: device)
      #expect(IntentAnswer(controlJSON: try JSONValue(parsing: response.body)).leaves == leaves, "\(device)")
    }
    await collector.close()
  }
}

extension TriggerSample {
  fileprivate func admits(
    _ device: String, _ rule: String, of namespace: NamespaceName, _ devicesMax: Int
  ) throws -> Bool {
    try outcome(of: device, for: rule, in: namespace, devicesMax: devicesMax) == .leaves
  }
}
