import Foundation
import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("A device gets its key, and loses it")
struct EnrollingTests {
  private static let master = Secret((0..<32).map { UInt8($0) })
  private let rig = StoreRig()

  private func collector(_ change: (inout CollectorOptions) -> Void = { _ in }) throws -> Collector {
    var options = CollectorOptions(state: rig.path, keys: ["main": Self.master])
    var rule = KeyRule()
    (rule.derivesForDevice, rule.namespaces) = (true, ["prism"])
    options.keyRules = ["main": rule]
    change(&options)
    return try Collector(options, time: rig.time, log: rig.log)
  }

  private static let pair = SealingPrivateKey([UInt8](repeating: 7, count: 32))

  /// The body of a request. - Parameter more: members behind the others.
  private static func body(_ device: String, _ pair: SealingPrivateKey? = pair, more: String = "") -> String {
    #"{"deviceId":"\#(device)","publicKey":"\#(pair?.publicKey.base64 ?? "")"\#(more)}"#
  }

  private func token(_ collector: Collector) async throws -> String {
    let (text, token) = EnrollmentToken.new(
      keyID: "main", devicesMax: 10, expireTime: rig.time.unixMilliseconds + 60_000)
    try await collector.devices.store.add(token)
    return text
  }

  private func enroll(
    _ collector: Collector, _ body: String, token: String?, isLocal: Bool = true
  ) async -> HTTPResponse {
    await collector.answer(
      HTTPRequest(
        method: .post, path: "/prism/enroll", headers: token.map { [("authorization", "Bearer \($0)")] } ?? [],
        body: Array(body.utf8), peer: HTTPPeer(address: "192.0.2.1", isLocal: isLocal)))
  }

  private func send(_ collector: Collector, device: String, key: Secret) async throws -> Int {
    var random = SystemRandomNumberGenerator()
    let context = PacketContext(
      deviceID: device, namespace: .prism, packetID: PacketID(unixMilliseconds: 1_700_000_000_000, using: &random),
      kind: .meta)
    return await collector.answer(try CollectorTests.request(context, metas: ["{}"], key: key)).status
  }

  @Test("the key that a device is given opens its packets, until it is revoked, and again when it is restored")
  func life() async throws {
    let collector = try collector()
    let answer = await enroll(
      collector, Self.body("d1", more: #","info":"rack 1""#), token: try await token(collector))
    let json = try JSONValue(parsing: answer.body)
    #expect(answer.status == 200 && json["deviceId"] == "d1" && json["keyId"] == "main")
    #expect(json["namespaces"] == ["prism"])
    #expect(json["key"] == nil, "the key leaves the collector sealed only")
    let opened = try #require(EnrolledKey(json)).open(with: try #require(Self.pair), of: "d1")
    let key = Secret(Array(opened.prefix(16)))
    #expect(try await send(collector, device: "d1", key: key) == 200)
    #expect(try await send(collector, device: "d2", key: key) == 400, "the key is for one device")
    try await collector.devices.store.setRevoked("d1", at: 1)
    rig.time.advance(by: .seconds(3))
    #expect(try await send(collector, device: "d1", key: key) == 403)
    try await collector.devices.store.setRevoked("d1", at: nil)
    rig.time.advance(by: .seconds(3))
    #expect(try await send(collector, device: "d1", key: key) == 200)
    #expect(await collector.metrics.contains(#"prism_collector_enrollments_total{outcome="enrolled"} 1"#))
    #expect(await collector.metrics.contains(#"prism_collector_refusals_total{cause="revoked"} 1"#))
    #expect(!rig.logged.contains { $0.contains(Hex.encode(opened)) }, "no key is in the log")
    await collector.close()
  }

  @Test("a token gives its tags to the devices that it enrolls, also where the first answer was lost")
  func tags() async throws {
    let collector = try collector()
    let (text, token) = EnrollmentToken.new(
      keyID: "main", devicesMax: 2, expireTime: rig.time.unixMilliseconds + 60_000, tags: DeviceTags(["region": "eu"]))
    try await collector.devices.store.add(token)
    let place = RecordPlace(namespace: .prism, table: .tags, device: "d1")
    let records = collector.store
    for _ in 0..<2 {
      #expect(await enroll(collector, Self.body("d1"), token: text).status == 200)
      let record = try await records.record(DeviceTags.Source.enrollment.id, of: place)
      #expect(record?.fields == Array(#"{"region":"eu"}"#.utf8) && record?.version == 1)
    }
    await collector.close()
  }

  @Test("an answer is given again to its key pair only, and opens for that pair and that device only")
  func bound() async throws {
    let collector = try collector()
    let token = try await token(collector)
    let other = try #require(SealingPrivateKey([UInt8](repeating: 8, count: 32)))
    let pair = try #require(Self.pair)
    let first = await enroll(collector, Self.body("d1"), token: token)
    rig.time.advance(by: .seconds(3600))
    let again = await enroll(collector, Self.body("d1"), token: token)
    #expect(first.status == 200 && again.status == 200, "however late its answer is asked for again")
    #expect(await enroll(collector, Self.body("d1", other), token: token).status == 409)
    let keys = try [first, again].map { try #require(EnrolledKey(JSONValue(parsing: $0.body))) }
    #expect(try keys[0].open(with: pair, of: "d1") == keys[1].open(with: pair, of: "d1"))
    #expect(throws: PacketError.decryptionFailed) { try keys[0].open(with: other, of: "d1") }
    #expect(throws: PacketError.decryptionFailed) { try keys[0].open(with: pair, of: "d2") }
    await collector.close()
  }

  @Test("a device that was forgotten is enrolled by its name, with another key; the stolen one opens nothing any more")
  func forgotten() async throws {
    let collector = try collector()
    let fleet = try await token(collector)
    func key(_ answer: HTTPResponse) throws -> Secret {
      let opened = try #require(EnrolledKey(JSONValue(parsing: answer.body))).open(
        with: try #require(Self.pair), of: "d1")
      return Secret(Array(opened.prefix(16)))
    }
    let stolen = try key(await enroll(collector, Self.body("d1"), token: fleet))
    #expect(try await send(collector, device: "d1", key: stolen) == 200)
    #expect(try await collector.devices.store.forget("d1"))
    rig.time.advance(by: .seconds(3))
    #expect(try await send(collector, device: "d1", key: stolen) == 400)
    #expect(await enroll(collector, Self.body("d1"), token: fleet).status == 409)
    let (text, named) = EnrollmentToken.new(
      keyID: "main", devicesMax: 1, expireTime: rig.time.unixMilliseconds + 60_000, device: "d1")
    try await collector.devices.store.add(named)
    #expect(await enroll(collector, Self.body("d2"), token: text).status == 403)
    let next = try key(await enroll(collector, Self.body("d1"), token: text))
    #expect(next != stolen)
    #expect(try await send(collector, device: "d1", key: next) == 200)
    #expect(try await send(collector, device: "d1", key: stolen) == 400)
    await collector.close()
  }

  @Test("an id that has sent packets before is not enrolled by a token of the fleet")
  func sentBefore() async throws {
    let collector = try collector()
    let key = try DeviceKey.derived(master: Self.master, keyID: "main", deviceID: "d1", cipher: .aes128GCM)
    #expect(try await send(collector, device: "d1", key: key) == 200)
    let answer = await enroll(collector, Self.body("d1"), token: try await token(collector))
    #expect(answer.status == 409 && String(decoding: answer.body, as: UTF8.self).contains("--device"))
    #expect(await enroll(collector, Self.body("d2"), token: try await token(collector)).status == 200)
    await collector.close()
  }

  @Test("a public key of small order gets a clear refusal")
  func smallOrder() async throws {
    let collector = try collector()
    let body = #"{"deviceId":"d","publicKey":"\#(Base64.encode([UInt8](repeating: 0, count: 32)))"}"#
    let answer = await enroll(collector, body, token: try await token(collector))
    #expect(answer.status == 400 && String(decoding: answer.body, as: UTF8.self).contains("publicKey"))
    #expect(try await collector.devices.store.page(after: "", limit: 10) == [])
    await collector.close()
  }

  @Test(
    "what is no enrollment is refused, and says why",
    arguments: [
      (body("d"), "wrong", 401, "the enrollment token is wrong"), (body("d"), nil, 401, "Bearer"),
      (body(""), "good", 400, "deviceId"), (body("a b"), "good", 400, "deviceId"),
      (#"{"deviceId":"d"}"#, "good", 400, "publicKey"), (body("d", nil), "good", 400, "publicKey"),
      (body("d", SealingPrivateKey([1])), "good", 400, "publicKey"), ("[]", "good", 400, "JSON object"),
      (body("d", more: #","more":1"#), "good", 400, "JSON object"),
      (body("d", more: #","info":"\#(String(repeating: "x", count: 1025))""#), "good", 400, "info"),
      (String(repeating: " ", count: 5000), "good", 400, "4096"),
    ] as [(String, String?, Int, String)])
  func refused(body: String, token: String?, status: Int, word: String) async throws {
    let collector = try collector()
    let good = try await self.token(collector)
    let answer = await enroll(collector, body, token: token == "good" ? good : token)
    #expect(answer.status == status && String(decoding: answer.body, as: UTF8.self).contains(word))
    #expect(try await collector.devices.store.page(after: "", limit: 10) == [])
    await collector.close()
  }

  @Test("a key leaves the machine over https only, unless a balancer ends TLS")
  func plain() async throws {
    for (allows, status) in [(false, 403), (true, 200)] {
      let collector = try collector { $0.allowsPlainEnrollment = allows }
      let token = try await token(collector)
      let answer = await enroll(collector, Self.body("d"), token: token, isLocal: false)
      #expect(answer.status == status)
      await collector.close()
    }
  }

  @Test("a collector without a master key enrolls no device")
  func noMaster() async throws {
    let collector = try collector { $0.keyRules = [:] }
    #expect(await enroll(collector, Self.body("d"), token: "t").status == 404)
    await collector.close()
  }

  @Test("a device over its limit learns when to come again, before its packet costs anything")
  func limited() async throws {
    let collector = try collector { $0.limits.devicePacketsPerMinute = 1 }
    let key = try DeviceKey.derived(master: Self.master, keyID: "main", deviceID: "d1", cipher: .aes128GCM)
    #expect(try await send(collector, device: "d1", key: key) == 200)
    #expect(try await send(collector, device: "d1", key: key) == 429)
    rig.time.advance(by: .seconds(61))
    #expect(try await send(collector, device: "d1", key: key) == 200)
    await collector.close()
  }
}
