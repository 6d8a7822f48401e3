import Foundation
import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismControl
import PrismEngine
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismLinux

/// A collector refuses the token for ten minutes, and then for more than an hour. Rows that are claimed by a packet
/// keep their age, for people and for alerts.
@Suite("The age of rows that are held")
struct AgeOfHeldRowsTests {
  private let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(401, to: $0) })

  @Test("while a collector answers 401, status and the metric tell the oldest row's age, and the alerts on them fire")
  func refusedToken() async throws {
    let engine = try await rig.engine()
    let sources = MetricsServer.Sources(
      engine: engine, version: "1", ingest: { IngestCounters() }, remote: { RemoteFigures() })
    let server = MetricsServer(sources, log: Logger(write: { _ in }))
    let handler = ControlHandler(engine: engine, version: "1", configuration: RigFiles()) { ProcessFigures() }
    await rig.report(0..<3, to: engine)
    let begin = rig.time.uptime
    #expect(await rig.runs { await Self.samples(server)["prism_namespace_held"] == 1 })
    var series: [[String: Double]] = []
    for minute in 0..<80 {
      _ = await rig.runs { rig.time.uptime - begin >= .seconds(60 * minute) }
      let (age, page) = (try await Self.statusAge(handler), await Self.samples(server))
      let elapsed = Double((rig.time.uptime - begin).components.seconds)
      let metric = try #require(page["prism_oldest_waiting_age_seconds"])
      #expect(abs(metric - elapsed) <= 2, "after \(elapsed) s the metric says \(metric)")
      #expect(abs(Double(age) - elapsed) <= 2, "after \(elapsed) s status says \(age)")
      series.append(page)
    }
    #expect(rig.transport.requests.count > 1, "it went on asking")
    await engine.stop()
    try await expectAlerts(series)
  }

  /// Of the metas of `shop`, as `prismctl status` shows it.
  private static func statusAge(_ handler: ControlHandler) async throws -> Int {
    let caller = ControlCaller(userID: 0, processID: 1, role: .reader)
    var status: JSONValue?
    for await answer in handler.handle(ControlRequest(.status, []), from: caller) { status = status ?? answer }
    let shop = status?["status"]?["namespaces"]?["shop"]
    return try #require(shop?["meta"]?["oldestAgeSeconds"]?.int, "\(status?.text ?? "")")
  }

  /// The figures of `shop`'s metas that alerts read.
  private static func samples(_ server: MetricsServer) async -> [String: Double] {
    let peer = HTTPPeer(address: "127.0.0.1", isLocal: true)
    let page = await server.answer(HTTPRequest(method: .get, path: "/metrics", peer: peer))
    var samples: [String: Double] = [:]
    for line in String(decoding: page.body, as: UTF8.self).split(separator: "\n") {
      for name in ["prism_oldest_waiting_age_seconds", "prism_namespace_held"] {
        guard line.hasPrefix(name + "{"), line.contains(#"namespace="shop""#), !line.contains(#"kind="payload""#) else {
          continue
        }
        samples[name] = line.split(separator: " ").last.flatMap { Double($0) }
      }
    }
    return samples
  }

  /// The rules of docs/alerts.yml over what the daemon served, minute by minute.
  private func expectAlerts(_ series: [[String: Double]]) async throws {
    let values = { (name: String) in series.map { "\($0[name] ?? -1)" }.joined(separator: " ") }
    let text = """
      rule_files: [\(Repository.folder)/docs/alerts.yml]
      evaluation_interval: 1m
      tests:
        - interval: 1m
          input_series:
            - {series: 'prism_oldest_waiting_age_seconds{instance="a",namespace="shop",kind="meta"}',
               values: '\(values("prism_oldest_waiting_age_seconds"))'}
            - {series: 'prism_namespace_held{instance="a",namespace="shop"}', values: '\(values("prism_namespace_held"))'}
          promql_expr_test:
            - {expr: 'count(ALERTS{alertname="PrismHeld",alertstate="firing"})', eval_time: 10m,
               exp_samples: [{labels: '{}', value: 1}]}
            - {expr: 'ALERTS{alertname="PrismNotDelivering",alertstate="firing"}', eval_time: 60m, exp_samples: []}
            - {expr: 'count(ALERTS{alertname="PrismNotDelivering",alertstate="firing"})', eval_time: 75m,
               exp_samples: [{labels: '{}', value: 1}]}
            - {expr: 'prism_oldest_waiting_age_seconds > bool 598', eval_time: 10m,
               exp_samples: [{labels: '{instance="a", namespace="shop", kind="meta"}', value: 1}]}
      """
    let path = "\(rig.folder)/rules.test.yml"
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    defer { unlink(path) }
    let ran = try await ChildProcess.run(["promtool", "test", "rules", path])
    #expect(ran.status == 0, "\(ran.output)")
  }
}
