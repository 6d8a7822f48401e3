import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("The check of a head")
struct HeadCheckTests {
  private let rig: PageRig
  init() throws { rig = try PageRig() }

  private func request(
    token: String? = "sender-token-of-tests", from address: String = "192.0.2.1", _ headers: [String: String?] = [:]
  ) throws -> HTTPRequest {
    var all = headers
    if let token { all["authorization"] = "Bearer \(token)" }
    var request = try CollectorTests.request(
      CollectorTests.context(.meta), metas: [#"{"MONITOR_TYPE":"net"}"#], changing: all)
    (request.body, request.peer) = ([], HTTPPeer(address: address, isLocal: false))
    return request
  }

  private func status(_ request: HTTPRequest, by collector: Collector? = nil) -> Int {
    switch HeadCheck(collector: collector ?? rig.collector).admit(request) {
    case .take(let isProven): isProven ? 200 : 100
    case .refuse(let response): response.status
    }
  }

  /// The file of tokens is read off the server's thread, so the first answers may be that it is not known yet.
  private func readTokens() async throws { _ = await rig.collector.access.senders?.accepts(nil) }

  @Test(
    "a packet that its head condemns is refused before its body",
    arguments: [
      ([:], 200), (["prism-version": "9"], 503), (["prism-key-id": "other"], 401),
      (["content-type": "text/plain"], 415),
      (["prism-item-count": "x"], 400), (["prism-item-count": "10001"], 413), (["prism-namespace": nil], 400),
    ] as [([String: String?], Int)])
  func packets(headers: [String: String?], expected: Int) async throws {
    try await readTokens()
    #expect(status(try request(headers)) == expected)
    let counted = rig.collector.counts.outcomes["refused_\(expected)"] ?? 0
    #expect(counted == (expected == 200 ? 0 : 1))
  }

  @Test("a token proves a sender; until the file of tokens is read, nothing is decided") func tokens() async throws {
    // The first question of all begins to read it.
    #expect(status(try request(token: "wrong")) == 100)
    try await readTokens()
    #expect(status(try request()) == 200)
    #expect(status(try request(token: nil)) == 401)
    #expect(status(try request(token: "wrong")) == 401)
    #expect(
      status(PageRig.request("/prism/config", headers: [("authorization", "Bearer sender-token-of-tests")])) == 200)
    #expect(status(PageRig.request("/healthz")) == 100)
    var options = CollectorOptions(state: TemporaryFolder.make(), keys: ["main": CollectorTests.key])
    options.limits.devicePacketsPerMinute = 1
    let open = try Collector(options, log: Logger(write: { _ in }))
    #expect(status(try request(token: nil), by: open) == 100, "without tokens a packet proves its sender")
    await open.close()
  }

  @Test("wrong tokens of an address are limited, counted and logged; a right one is taken all the same")
  func wrongTokens() async throws {
    try await readTokens()
    for _ in 0..<10 { #expect(status(try request(token: "wrong")) == 401) }
    #expect(status(try request(token: "wrong")) == 429)
    #expect(status(try request(token: "wrong", from: "192.0.2.2")) == 401)
    #expect(status(try request()) == 200)
    #expect(rig.collector.counts.refusals["token"] == 12)
    #expect(rig.rig.logged.contains { $0.contains("packets refused") && $0.contains("192.0.2.1") })
    rig.rig.time.advance(by: .seconds(1))
    try await readTokens()
    rig.rig.time.advance(by: .seconds(60))
    try await readTokens()
    #expect(status(try request(token: "wrong")) == 401)
  }

  @Test("a reader's wrong tokens are limited, too") func readers() async throws {
    let ask = { await rig.answer(PageRig.request("/reports", headers: [("authorization", "Bearer wrong")])).status }
    for _ in 0..<10 { #expect(await ask() == 401) }
    #expect(await ask() == 429)
  }

  @Test(
    "a question has a short body",
    arguments: [
      ("/prism/probe", "content-length", "65536", 100), ("/prism/probe", "content-length", "65537", 413),
      ("/prism/enroll", "transfer-encoding", "chunked", 413), ("/other", "content-length", "8000000", 413),
    ])
  func questions(path: String, name: String, value: String, expected: Int) {
    #expect(status(PageRig.request(path, method: .post, headers: [(name, value)])) == expected)
  }

  @Test("connections that are closed for others are one log line a minute") func crowded() {
    for _ in 0..<5 { rig.collector.refusals.add(.unproven, from: "192.0.2.9") }
    let lines = rig.rig.logged.filter { $0.contains("connections are closed for others") }
    #expect(lines.count == 1 && lines[0].contains("192.0.2.9"))
  }

  @Test("a device is counted its rows and what its packet unpacks to") func unpackedBytes() async throws {
    var options = CollectorOptions(state: TemporaryFolder.make(), keys: ["main": CollectorTests.key])
    (options.limits.deviceBytesPerDay, options.limits.deviceRowsPerDay) = (1_048_576, 9000)
    let collector = try Collector(options, log: Logger(write: { _ in }))
    let zeros = try CollectorTests.request(
      CollectorTests.context(.payload), metas: [#"{"MONITOR_TYPE":"net"}"#],
      payloads: [[UInt8](repeating: 0, count: 2_097_152)])
    #expect(zeros.body.count < 100_000)
    #expect(await collector.answer(zeros).status == 200)
    let next = try CollectorTests.request(CollectorTests.context(.meta), metas: [#"{"MONITOR_TYPE":"net"}"#])
    #expect(await collector.answer(next).status == 429)
    let rows = try CollectorTests.request(
      CollectorTests.context(.meta, device: "d2"), metas: Array(repeating: #"{"n":1}"#, count: 9000))
    #expect(await collector.answer(rows).status == 200)
    let more = try CollectorTests.request(CollectorTests.context(.meta, device: "d2"), metas: [#"{"n":1}"#])
    #expect(await collector.answer(more).status == 429)
    await collector.close()
  }
}
