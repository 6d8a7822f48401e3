import Foundation
import PrismBase
import PrismConfig
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Readers by the word of a proxy", .timeLimit(.minutes(5)))
struct AssertionTests {
  private static let header = "x-proxy-assertion"

  /// A key set, and tokens of another library with the status that each must get (Vectors/make_web_tokens.py).
  private static let vectors: JSONValue = {
    let url = Bundle.module.url(forResource: "web-tokens", withExtension: "json", subdirectory: "Vectors")
    return url.flatMap { try? JSONValue(parsing: [UInt8](Data(contentsOf: $0))) } ?? .null
  }()
  static let tokens = (vectors["tokens"]?.array ?? []).compactMap { one in
    one["name"]?.string.map { (name: $0, status: one["status"]?.int ?? 0, token: one["token"]?.string ?? "") }
  }
  private static func token(_ name: String) -> String { tokens.first { $0.name == name }?.token ?? "" }

  private final class Rig {
    let rig = StoreRig()
    let collector: Collector
    var keys: String { rig.path + "/keys.json" }
    var viewers: String { rig.path + "/viewers" }

    init() throws {
      try AssertionTests.write(AssertionTests.vectors["keys"]!.text, to: rig.path + "/keys.json")
      try AssertionTests.write("subject:root@example.org\n", to: rig.path + "/operators")
      try AssertionTests.write(
        "viewer-token-of-tests\nsubject:ann@example.org namespaces=shop\n", to: rig.path + "/viewers")
      var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
      (options.readerTokenFile, options.operatorTokenFile) = (rig.path + "/viewers", rig.path + "/operators")
      options.assertion.header = "X-Proxy-Assertion"
      options.assertion.keys = HeldFile(path: rig.path + "/keys.json", content: Secret([]))
      (options.assertion.audience, options.assertion.issuer) = ("prism", "https://id.example")
      options.assertion.claim = "email"
      collector = try Collector(options, time: rig.time, log: rig.log)
    }

    func ask(
      _ path: String, method: HTTPRequest.Method = .get, body: String = "", _ headers: [(name: String, value: String)]
    ) async -> HTTPResponse {
      let type = body.isEmpty ? [] : [(name: "content-type", value: "application/json")]
      return await collector.answerReader(
        PageRig.request("/api/v1" + path, method: method, headers: headers + type, body: body), isOwner: false)
    }
  }

  private static func write(_ text: String, to path: String) throws {
    try text.write(toFile: path, atomically: true, encoding: .utf8)
  }

  @Test("a token is taken that one of the keys signed, for this collector, and now; and no other", arguments: tokens)
  func judged(name: String, status: Int, token: String) async throws {
    let rig = try Rig()
    let answer = await rig.ask("/fleet", [(Self.header, token)])
    #expect(answer.status == status, "\(name): \(String(decoding: answer.wholeBody, as: UTF8.self))")
  }

  @Test("the vectors are there") func vectorsAreThere() { #expect(Self.tokens.count == 34) }

  @Test("two headers prove nothing: the first may be the client's own")
  func twice() async throws {
    let header = (name: Self.header, value: Self.token("ES256"))
    let rig = try Rig()
    #expect(await rig.ask("/fleet", [header, header]).status == 401)
  }

  @Test("who reads has the name and the namespaces of its line, and loses them with it within 5 s")
  func rights() async throws {
    let rig = try Rig()
    let headers = [(name: Self.header, value: Self.token("RS256"))]
    let session = try JSONValue(parsing: await rig.ask("/session", headers).wholeBody)
    #expect(session["name"]?.string == "viewer ann@example.org" && session["role"]?.string == "viewer")
    #expect(session["namespaces"]?.array?.compactMap(\.string) == ["shop"] && session["expires"]?.int == nil)
    #expect(await rig.ask("/notices", headers).status == 403)
    try Self.write("viewer-token-of-tests\n", to: rig.viewers)
    rig.rig.time.advance(by: .seconds(3))
    #expect(await rig.ask("/fleet", headers).status == 403)
  }

  @Test("a key that leaves the set signs nothing more; a set that is damaged changes nothing")
  func keysChange() async throws {
    let rig = try Rig()
    let headers = [(name: Self.header, value: Self.token("ES256"))]
    #expect(await rig.ask("/fleet", headers).status == 200)
    let keys = Self.vectors["keys"]?["keys"]?.array ?? []
    for (text, status) in [("{", 200), (#"{"keys":[\#(keys[2].text)]}"#, 401)] {
      try Self.write(text, to: rig.keys)
      rig.rig.time.advance(by: .seconds(3))
      #expect(await rig.ask("/fleet", headers).status == status)
    }
  }

  @Test("a change over the proxy needs the change token, which no other origin can read")
  func changes() async throws {
    let rig = try Rig()
    try Self.write("subject:ann@example.org\n", to: rig.rig.path + "/operators")
    let header = (name: Self.header, value: Self.token("ES256"))
    let session = try JSONValue(parsing: await rig.ask("/session", [header]).wholeBody)
    #expect(session["role"]?.string == "operator")
    let body = #"{"state":"resolved"}"#
    let tokens = [nil, "", "wrong", session["changeToken"]?.string]
    for token in tokens {
      let headers = [header] + (token.map { [(name: "x-prism-change", value: $0)] } ?? [])
      let status = await rig.ask("/crashes/0123456789abcdef/state", method: .post, body: body, headers).status
      #expect((status == 403) == (token != tokens.last!), "\(token ?? "nil"): \(status)")
    }
  }

  @Test(
    "the name of a subject is no token, and signs no session",
    arguments: ["subject:ann@example.org", "ann@example.org", ""])
  func subjectIsNoToken(token: String) async throws {
    let rig = try Rig()
    #expect(await rig.ask("/fleet", [("authorization", "Bearer " + token)]).status == 401)
    let body = #"{"token":"\#(token)"}"#
    #expect([400, 401].contains(await rig.ask("/session", method: .post, body: body, []).status))
  }
}
