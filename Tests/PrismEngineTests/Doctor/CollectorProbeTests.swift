import PrismConfig
import PrismControl
import PrismPacket
import PrismProtocol
import Testing

@testable import PrismEngine

/// The findings about each thing that can be wrong between a daemon and its collector.
@Suite("Doctor: the probe of a collector")
struct CollectorProbeTests {
  private static let key = Secret([UInt8](repeating: 1, count: 16))
  private static let now: Int64 = 1_795_000_000_000

  private func probe(isProven: Bool = false, token: String? = nil) throws -> CollectorProbe {
    CollectorProbe(
      url: "https://c.test", namespaces: [NamespaceName("shop")!], deviceID: "d",
      key: .init(id: "main", file: "/k", secret: Self.key),
      token: token.map { HeldFile(path: "/token", content: Secret(Array($0.utf8))) }, tls: .init(), isProven: isProven)
  }

  private func findings(
    _ answer: ProbeAnswer, signedBy key: Secret? = key, proven: Bool = false
  ) throws -> [Finding] {
    let probe = try probe(isProven: proven)
    let question = try probe.request(now: Self.now, timeout: .seconds(1)).question
    let body = Array(answer.controlJSON.text.utf8)
    let mac = try key.map { try ProbeCode(key: $0).ofAnswer(body, nonce: question.nonce) }
    let headers = mac.map { ["prism-mac": $0] } ?? [:]
    return probe.findings(.response(status: 200, headers: headers, body: body), to: question, now: Self.now)
  }

  private func answer(
    _ key: ProbeAnswer.Verdict = .ok, _ token: ProbeAnswer.Verdict = .ok, time: Int64 = now,
    versions: [Int] = [CollectorProbe.version], refused: [String] = []
  ) -> ProbeAnswer {
    var answer = ProbeAnswer()
    (answer.collector, answer.versions, answer.time) = ("prism-collector 9", versions, Int(time))
    (answer.key, answer.token, answer.refusedNamespaces) = (key, token, refused)
    return answer
  }

  @Test("a collector with the same key that takes the token is well")
  func well() throws {
    let found = try findings(answer())
    #expect(found.allSatisfy { $0.result == .ok })
    #expect(found.map(\.check) == ["url shop", "key of shop", "token of shop"])
    #expect(found.flatMap(\.namespaces) == ["shop", "shop", "shop"])
  }

  @Test(
    "each thing that is wrong is one finding with what to do",
    arguments: [
      (ProbeAnswer.Verdict.unknown, ProbeAnswer.Verdict.ok, "no key of the id `main`"),
      (.wrong, .ok, "the key `main` here and the collector's of that id differ"),
      (.ok, .wrong, "does not take the token"), (.ok, .missing, "asks for a token, and no token is configured"),
    ])
  func wrong(key: ProbeAnswer.Verdict, token: ProbeAnswer.Verdict, text: String) throws {
    let faults = try findings(answer(key, token)).filter { $0.result == .fault }
    #expect(faults.count == 1 && faults[0].text.contains(text) && faults[0].advice != nil, "\(faults)")
  }

  @Test("an answer that claims the key and can't prove it is a fault, and so is one that is signed with another")
  func unsigned() throws {
    for key in [nil, Secret([UInt8](repeating: 2, count: 16))] {
      let faults = try findings(answer(), signedBy: key).filter { $0.result == .fault }
      #expect(faults.count == 1 && faults[0].text.contains("does not prove it"))
    }
  }

  @Test("another version, a namespace that is not taken and another clock are found")
  func others() throws {
    let found = try findings(answer(time: Self.now - 300_000, versions: [7], refused: ["shop"]))
    #expect(found.filter { $0.result == .fault }.map(\.check) == ["namespace shop", "version of shop"])
    #expect(found.last?.text.contains("300 s ahead of") == true)
  }

  @Test(
    "what is no collector is named as what it is; a receiver that took packets passes",
    arguments: [
      (404, ["server": "nginx"], false, Finding.Result.fault, "web server (Server: nginx), but no prism-collector"),
      (200, [:], false, .fault, "but no prism-collector"), (404, [:], true, .ok, "answers packets as a collector does"),
      (301, ["location": "https://x/"], true, .fault, "redirects to https://x/"),
      (401, [:], false, .fault, "asks for credentials"), (403, [:], false, .fault, "asks for credentials"),
      (503, [:], true, .warning, "status 503"),
    ] as [(Int, [String: String], Bool, Finding.Result, String)])
  func strangers(status: Int, headers: [String: String], isProven: Bool, result: Finding.Result, text: String) throws {
    let probe = try probe(isProven: isProven)
    let question = try probe.request(now: Self.now, timeout: .seconds(1)).question
    let found = probe.findings(.response(status: status, headers: headers, body: []), to: question, now: Self.now)
    #expect(found.count == 1 && found[0].result == result && found[0].text.contains(text), "\(found)")
  }

  @Test(
    "a client certificate that is missing or not taken is named, and not the token",
    arguments: [
      (401, "a client certificate of a known authority is required", nil, "tls.certFile is not set"),
      (400, "<center>No required SSL certificate was sent</center>", nil, "tls.certFile is not set"),
      (401, "a client certificate of a known authority is required", "/c.pem", "client certificate of /c.pem"),
    ] as [(Int, String, String?, String)])
  func certificates(status: Int, body: String, file: String?, text: String) throws {
    var probe = try probe(token: "t0ken")
    if let file {
      probe = CollectorProbe(
        url: probe.url, namespaces: probe.namespaces, deviceID: "d", key: probe.key, token: probe.token,
        tls: .init(certFile: HeldFile(path: file, content: Secret([]))), isProven: true)
    }
    let question = try probe.request(now: Self.now, timeout: .seconds(1)).question
    let found = probe.findings(
      .response(status: status, headers: [:], body: Array(body.utf8)), to: question, now: Self.now)
    #expect(found.count == 1 && found[0].result == .fault && found[0].text.contains(text), "\(found)")
    #expect(found[0].advice?.contains("tls.clientCAFile") == true && found[0].advice?.contains("token") == false)
  }

  @Test("without a network the finding says so, and names the route; a fault of TLS has another cause")
  func offline() throws {
    var probe = try probe()
    probe.offline = "no usable default route; eth0 is down"
    let question = try probe.request(now: Self.now, timeout: .seconds(1)).question
    let found = [PostAnswer.Failure.resolve, .connect, .timeout, .tls].map {
      probe.findings(.failure($0, detail: "it failed"), to: question, now: Self.now)[0]
    }
    #expect(found.map { $0.text.contains("no usable default route; eth0 is down") } == [true, true, true, false])
    #expect(found.map { $0.advice?.contains("`ip route`") == true } == [true, true, true, false])
  }

  @Test("a changed file takes a restart where systemd gave the daemon a copy of it, else a reload")
  func changedFile() {
    #expect(Doctor.then("/run/credentials/prismd.service/keys_main.key").contains("systemctl restart prismd"))
    #expect(Doctor.then("/etc/prism/keys/main.key").contains("prismctl reload"))
  }

  @Test("a probe carries the token and a code of its own body, and never the key")
  func request() throws {
    let (question, request) = try probe(token: "t0ken").request(now: Self.now, timeout: .seconds(1))
    #expect(request.url == "https://c.test/prism/probe" && question.nonce.count == 32)
    let headers = Dictionary(uniqueKeysWithValues: request.headers.map { ($0.name, $0.value) })
    #expect(headers["Authorization"] == "Bearer t0ken")
    #expect(headers["Prism-Mac"] == (try ProbeCode(key: Self.key).ofQuestion(request.body)))
    #expect(!String(decoding: request.body, as: UTF8.self).contains("0101"))
  }
}
