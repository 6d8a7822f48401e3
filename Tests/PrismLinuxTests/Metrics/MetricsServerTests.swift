import Foundation
import Glibc
import PrismAdmission
import PrismBase
import PrismEngine
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismLinux

@Suite("Metrics and health")
struct MetricsServerTests {
  private let rig = DeliveryRig()

  private func server(_ change: (inout IngestCounters) -> Void = { _ in }) async throws -> (MetricsServer, Engine) {
    let engine = try await rig.engine()
    var ingest = IngestCounters()
    change(&ingest)
    let sources = MetricsServer.Sources(
      engine: engine, version: "1.2.3", ingest: { [ingest] in ingest }, remote: { RemoteFigures() })
    return (MetricsServer(sources, log: Logger(write: { _ in })), engine)
  }

  private static let peer = HTTPPeer(address: "127.0.0.1", isLocal: true)

  private func get(_ path: String, of server: MetricsServer) async -> (status: Int, text: String) {
    let answer = await server.answer(HTTPRequest(method: .get, path: path, peer: Self.peer))
    return (answer.status, String(decoding: answer.body, as: UTF8.self))
  }

  private func curl(_ url: String) async throws -> (output: String, status: Int32) {
    try await ChildProcess.run(["curl", "-sS", "--max-time", "20", url])
  }

  @Test("the page tells what was stored, sent and refused, and Prometheus' own checker finds nothing to say of it")
  func page() async throws {
    let (server, engine) = try await server { $0.tally.refused[.unknownType] = 3 }
    await rig.report(0..<5, to: engine)
    await rig.report(5..<7, of: "scan", payload: [1, 2, 3], to: engine)
    #expect(await rig.runs { await get("/metrics", of: server).text.contains(Self.delivered) })
    let text = await get("/metrics", of: server).text
    for line in [
      #"prism_stored_rows_total{namespace="shop",kind="meta"} 7"#,
      #"prism_rows{namespace="shop",kind="meta",state="waiting"} 0"#,
      #"prism_reports_refused_total{code="unknown_type"} 3"#, #"prism_reports_refused_total{code="busy"} 0"#,
      "prism_commit_rows_count 2", "prism_commit_rows_sum 7.0", #"prism_commit_rows_bucket{le="4.0"} 1"#,
      #"prism_build_info{version="1.2.3"} 1"#, #"prism_store_state{state="working"} 1"#, "prism_store_answers 1",
    ] { #expect(text.split(separator: "\n").contains { $0 == line }, "\(line)") }
    #expect(try await Promtool.faults(in: text) == "")
    await engine.stop()
  }
  private static let delivered = #"prism_settled_rows_total{namespace="shop",kind="payload",result="delivered"} 2"#

  @Test("a namespace that is configured has its figures before anything is stored in it")
  func empty() async throws {
    let (server, engine) = try await server()
    let text = await get("/metrics", of: server).text
    for line in [
      #"prism_rows{namespace="shop",kind="meta",state="waiting"} 0"#,
      #"prism_stored_rows_total{namespace="shop",kind="payload"} 0"#,
      #"prism_oldest_waiting_age_seconds{namespace="shop",kind="meta"} 0.0"#,
      #"prism_retries_total{namespace="shop",kind="records"} 0"#,
      #"prism_send_window_packets{namespace="shop",kind="records"} 1"#,
    ] { #expect(text.split(separator: "\n").contains { $0 == line }, "\(line)") }
    await engine.stop()
  }

  @Test("docs/metrics.md has each metric with its type and its meaning, and no other metric")
  func documentation() async throws {
    let (server, engine) = try await server()
    let page = await get("/metrics", of: server).text
    let help = Dictionary(
      uniqueKeysWithValues: page.matches(of: /# HELP (\w+) (.+)/).map { (String($0.1), String($0.2)) })
    let served = page.matches(of: /# TYPE (\w+) (\w+)/).map { "\($0.1) \($0.2): \(help[String($0.1)] ?? "")" }
    let documented = try Repository.text("docs/metrics.md")
      .matches(of: /(?m)^\| `((?:prism|process)_(?!collector)\w+)`[^|]* \| (\w+)[^|]* \| (.+) \|$/)
      .map { "\($0.1) \($0.2): \($0.3)" }
    #expect(served.sorted() == documented.sorted())
    await engine.stop()
  }

  @Test(
    "it listens at the configured address, and changes that while it runs; a port that is taken leaves all as it was")
  func listening() async throws {
    let (server, engine) = try await server()
    try await server.listen(on: "127.0.0.1:0")
    let first = await server.port
    #expect(try await curl("http://127.0.0.1:\(first)/healthz").output == "ok\n")
    let taken = try ListeningSocket(address: "127.0.0.1:0")
    defer { close(taken.descriptor) }
    await #expect(throws: HTTPServerError.self) { try await server.listen(on: "127.0.0.1:\(taken.port)") }
    #expect(try await curl("http://127.0.0.1:\(first)/readyz").output == "ready\n")
    try await server.listen(on: "0.0.0.0:\(first)")
    #expect(await server.port == first)
    #expect(try await curl("http://127.0.0.1:\(first)/metrics").output.contains("prism_build_info"))
    try await server.listen(on: nil)
    #expect(try await curl("http://127.0.0.1:\(first)/healthz").status == 7, "nobody listens")
    await engine.stop()
  }

  @Test("other paths and methods are refused with a word on what there is")
  func refusals() async throws {
    let (server, engine) = try await server()
    #expect(await get("/nowhere", of: server).status == 404)
    let post = await server.answer(HTTPRequest(method: .post, path: "/metrics", peer: Self.peer))
    #expect(post.status == 405 && post.headers.contains { $0 == ("Allow", "GET") })
    await engine.stop()
  }

  @Test("many scrapes at one time are all answered in full")
  func crowd() async throws {
    let (server, engine) = try await server()
    await withTaskGroup(of: String.self) { group in
      for _ in 0..<50 { group.addTask { await get("/metrics", of: server).text } }
      for await text in group { #expect(text.contains("prism_store_answers 1")) }
    }
    await engine.stop()
  }
}

/// The package's own files.
enum Repository {
  static var folder: String { "/" + #filePath.split(separator: "/Tests/PrismLinuxTests/")[0].drop { $0 == "/" } }

  static func text(_ path: String) throws -> String {
    try String(contentsOfFile: "\(folder)/\(path)", encoding: .utf8)
  }
}
