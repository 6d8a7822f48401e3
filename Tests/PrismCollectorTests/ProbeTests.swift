import Foundation
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("The probe of a collector")
struct ProbeTests {
  private let rig = StoreRig()

  private func collector(hasTokens: Bool) throws -> Collector {
    var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
    if hasTokens {
      try "good-token-of-tests\n".write(toFile: rig.path + "/senders", atomically: true, encoding: .utf8)
      options.tokenFile = rig.path + "/senders"
    }
    return try Collector(options, time: rig.time, log: rig.log)
  }

  private func body(keyID: String = "main") -> [UInt8] {
    var question = ProbeQuestion()
    (question.keyID, question.nonce, question.namespaces) = (keyID, "n1", ["shop", "no name"])
    return Array(question.controlJSON.text.utf8)
  }

  private func request(_ body: [UInt8], key: Secret, token: String?) throws -> HTTPRequest {
    var headers = [(name: "prism-mac", value: try ProbeCode(key: key).ofQuestion(body))]
    if let token { headers.append(("authorization", "Bearer \(token)")) }
    return HTTPRequest(
      method: .post, path: ProbeQuestion.path, headers: headers, body: body,
      peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
  }

  private static let other = Secret([UInt8](repeating: 9, count: 16))

  @Test(
    "key and token have a verdict each; who has neither learns nothing of keys",
    arguments: [
      (false, "main", CollectorTests.key, nil, ProbeAnswer.Verdict.ok, ProbeAnswer.Verdict.notAsked),
      (false, "main", other, nil, .wrong, .notAsked), (false, "else", other, nil, .unknown, .notAsked),
      (true, "main", CollectorTests.key, "good-token-of-tests", .ok, .ok),
      (true, "main", CollectorTests.key, "bad", .ok, .wrong),
      (true, "main", CollectorTests.key, nil, .ok, .missing), (true, "main", other, "good-token-of-tests", .wrong, .ok),
      (true, "main", other, "bad", .hidden, .wrong), (true, "else", other, nil, .hidden, .missing),
    ])
  func verdicts(
    hasTokens: Bool, keyID: String, key: Secret, token: String?, ofKey: ProbeAnswer.Verdict,
    ofToken: ProbeAnswer.Verdict
  ) async throws {
    let (collector, body) = (try collector(hasTokens: hasTokens), body(keyID: keyID))
    let response = await collector.answer(try request(body, key: key, token: token))
    let answer = ProbeAnswer(controlJSON: try JSONValue(parsing: response.body))
    #expect(response.status == 200 && answer.collector.hasPrefix("prism-collector "))
    #expect(answer.versions == Collector.packetVersions)
    #expect(answer.key == ofKey && answer.token == ofToken)
    #expect(answer.refusedNamespaces == ["no name"] && answer.time == Int(rig.time.unixMilliseconds))
    let mac = response.headers.first { $0.name == "Prism-Mac" }?.value
    let expected = try ProbeCode(key: key).ofAnswer(response.body, nonce: "n1")
    #expect(ProbeCode.areEqual(mac, expected) == (ofKey == .ok), "only who has the key can sign the answer")
    #expect(collector.counts.metrics.contains("prism_collector_probes_total"))
  }

  @Test("what is no question is refused, and stores nothing", arguments: ["", "[]", "{}", "{\"nonce\":\"\"}"])
  func nonsense(text: String) async throws {
    let collector = try collector(hasTokens: false)
    let response = await collector.answer(try request(Array(text.utf8), key: CollectorTests.key, token: nil))
    #expect(response.status == 400)
  }

  @Test("a parameter with a typing error is named, with the one that was meant")
  func parameters() async throws {
    let asked = HTTPRequest(
      method: .get, path: "/reports", query: [("namspace", "shop")],
      peer: HTTPPeer(address: "127.0.0.1", isLocal: true))
    let response = await (try collector(hasTokens: false)).answerReader(asked, isOwner: true)
    let text = String(decoding: response.body, as: UTF8.self)
    #expect(response.status == 400 && text.contains("`namspace` is no parameter") && text.contains("`namespace`?"))
  }
}
