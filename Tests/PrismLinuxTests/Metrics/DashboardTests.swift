import Foundation
import PrismAdmission
import PrismBase
import PrismEngine
import PrismHTTP
import PrismTestSupport
import Testing

@testable import PrismLinux

@Suite("The dashboard and the alerts of docs/")
struct DashboardTests {
  private let rig = DeliveryRig()

  /// The families of a page that is served, with what a histogram's samples are called.
  private func served() async throws -> Set<String> {
    let engine = try await rig.engine()
    let sources = MetricsServer.Sources(
      engine: engine, version: "1", ingest: { IngestCounters() }, remote: { RemoteFigures() })
    let server = MetricsServer(sources, log: Logger(write: { _ in }))
    let request = HTTPRequest(method: .get, path: "/metrics", peer: HTTPPeer(address: "", isLocal: true))
    let page = String(decoding: await server.answer(request).body, as: UTF8.self)
    await engine.stop()
    return Set(
      page.matches(of: /# TYPE (\w+) (\w+)/).flatMap { match -> [String] in
        let name = String(match.1)
        return match.2 == "histogram" ? ["_bucket", "_sum", "_count"].map { name + $0 } : [name]
      })
  }

  /// As docs/metrics.md has them, which a test of the collector holds to its page.
  private static func ofCollector() throws -> Set<String> {
    let rows = try Repository.text("docs/metrics.md").matches(of: /(?m)^\| `(prism_collector_\w+)`[^|]* \| (\w+)/)
    return Set(rows.flatMap { $0.2 == "histogram" ? ["\($0.1)_bucket"] : [String($0.1)] })
  }

  private static func names(in text: String) -> Set<String> {
    Set(text.matches(of: /\b(?:prism|process)_[a-z_]+\b/).map { String($0.output) })
  }

  @Test("each panel and each alert asks for metrics that are served")
  func names() async throws {
    let served = try await served()
    let dashboard = try JSONSerialization.jsonObject(with: Data(Repository.text("docs/grafana-dashboard.json").utf8))
    let panels = try #require((dashboard as? [String: Any])?["panels"] as? [[String: Any]])
    #expect(panels.count >= 10)
    for panel in panels {
      let targets = panel["targets"] as? [[String: Any]] ?? []
      let asked = targets.map { Self.names(in: $0["expr"] as? String ?? "") }
      #expect(!asked.isEmpty && asked.allSatisfy { !$0.isEmpty && $0.isSubset(of: served) }, "\(panel["title"] ?? "")")
    }
    let alerts = try Repository.text("docs/alerts.yml").split(separator: "\n").filter { !$0.contains("summary:") }
    let asked = Self.names(in: alerts.joined(separator: "\n"))
    let known = served.union(try Self.ofCollector())
    #expect(asked.isSubset(of: known), "\(asked.subtracting(known))")
  }

  @Test(
    "each alert fires once its cause has lasted, and not before",
    arguments: ["check rules alerts.yml", "test rules alerts.test.yml"])
  func rules(words: String) async throws {
    let ran = try await ChildProcess.run(["sh", "-c", "cd \(Repository.folder)/docs && promtool \(words)"])
    #expect(ran.status == 0, "\(ran.output)")
    let alerts = try Repository.text("docs/alerts.yml").matches(of: /- alert: (\w+)/).map { String($0.1) }
    let tested = Set(try Repository.text("docs/alerts.test.yml").matches(of: /alertname: (\w+)/).map { String($0.1) })
    #expect(tested == Set(alerts))
  }
}
