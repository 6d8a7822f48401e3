import Foundation
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("What devices say of their configuration")
struct ProvenQuestionTests {
  enum Speaker: CaseIterable { case token, otherDevice, otherWords, unknownKey }

  private static let token = "sender-token-of-tests"

  private static func key(of device: String) throws -> Secret {
    try DeviceKey.derived(
      master: CollectorTests.key, keyID: "main", deviceID: device, generation: 0, cipher: .aes128GCM)
  }

  private static func question(_ failed: String?) -> ConfigurationQuestion {
    var question = ConfigurationQuestion(deviceID: "d")
    (question.lastFailed, question.reason) = (failed, failed.map { "cause \($0)" })
    return question
  }

  private static func ask(
    _ collector: Collector, _ question: ConfigurationQuestion, _ proof: [(name: String, value: String)]
  ) async -> Int {
    let headers = [(name: "authorization", value: "Bearer " + token)] + proof.map { ($0.name.lowercased(), $0.value) }
    return await collector.answer(
      HTTPRequest(
        method: .get, path: "/prism/config", query: question.parameters, headers: headers,
        peer: HTTPPeer(address: "192.0.2.1", isLocal: false))
    ).status
  }

  @Test("a revoked device gets no configuration")
  func revoked() async throws {
    let folder = TemporaryFolder.make()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Self.token.write(toFile: folder + "/tokens", atomically: true, encoding: .utf8)
    var options = CollectorOptions(state: folder, keys: ["main": CollectorTests.key])
    (options.tokenFile, options.remote) = (folder + "/tokens", CollectorOptions.Remote(folder: folder))
    let time = ManualTime()
    let collector = try Collector(options, time: time, log: Logger(write: { _ in }))
    #expect(await Self.ask(collector, Self.question(nil), []) == 200)
    try await collector.devices.store.setRevoked("d", at: 1)
    time.advance(by: .seconds(6))
    #expect(await Self.ask(collector, Self.question(nil), []) == 403)
    await collector.close()
  }

  @Test("a sender without the key of the device changes nothing that the device said", arguments: Speaker.allCases)
  func proven(speaker: Speaker) async throws {
    let folder = TemporaryFolder.make()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try Self.token.write(toFile: folder + "/tokens", atomically: true, encoding: .utf8)
    var rule = KeyRule()
    rule.derivesForDevice = true
    var options = CollectorOptions(state: folder, keys: ["main": CollectorTests.key])
    (options.keyRules, options.tokenFile) = (["main": rule], folder + "/tokens")
    options.remote = CollectorOptions.Remote(folder: folder)
    let collector = try Collector(options, log: Logger(write: { _ in }))
    let register = try #require(collector.remote?.devices)
    func said() async throws -> JSONValue? { try await register.entry(of: "d")?["lastFailed"] }

    #expect(await Self.ask(collector, Self.question("1"), []) == 200)
    #expect(try await said() == "1")
    let own = try Self.question("2").proof(cipher: .aes128GCM, keyID: "main", key: Self.key(of: "d"))
    #expect(await Self.ask(collector, Self.question("2"), own) == 200)
    let forged =
      switch speaker {
      case .token: [(name: String, value: String)]()
      case .otherDevice: try Self.question("3").proof(cipher: .aes128GCM, keyID: "main", key: Self.key(of: "e"))
      case .otherWords: own
      case .unknownKey: try Self.question("3").proof(cipher: .aes128GCM, keyID: "other", key: Self.key(of: "d"))
      }
    #expect(await Self.ask(collector, Self.question("3"), forged) == 200)  // of those that wait to be written down
    #expect(try await said() == "2")
    #expect(await Self.ask(collector, Self.question("3"), forged) == 200)  // of those that are
    #expect(try await said() == "2")
    let well = try Self.question(nil).proof(cipher: .aes128GCM, keyID: "main", key: Self.key(of: "d"))
    #expect(await Self.ask(collector, Self.question(nil), well) == 200)
    #expect(try await said() == .null)
  }
}
