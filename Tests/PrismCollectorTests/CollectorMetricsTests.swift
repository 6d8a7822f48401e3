import Foundation
import PrismHTTP
import PrismProtocol
import Testing

@testable import PrismCollector

@Suite("The collector's metrics")
struct CollectorMetricsTests {
  @Test("a counter is there before its first event, so that `increase` sees it")
  func zeroes() {
    let counts = CollectorCounts()
    for line in [
      #"prism_collector_refusals_total{cause="status429"} 0"#, #"prism_collector_refusals_total{cause="token"} 0"#,
      #"prism_collector_probes_total{outcome="would_refuse"} 0"#,
      #"prism_collector_enrollments_total{outcome="refused_403"} 0"#,
      #"prism_collector_record_questions_total{outcome="all"} 0"#,
    ] { #expect(counts.metrics.contains(line + "\n"), "\(line)") }
    counts.count(NamespaceName("shop"), outcome: "stored", bytes: 9)
    for (outcome, count) in [("stored", 1), ("refused_429", 0)] {
      let line = #"prism_collector_packets_total{namespace="shop",outcome="\#(outcome)"} \#(count)"#
      #expect(counts.metrics.contains(line + "\n"), "\(line)")
    }
  }

  @Test("docs/metrics.md has each metric of the collector with its type and its meaning, and no other")
  func documentation() throws {
    let counts = CollectorCounts()
    counts.count(.prism, outcome: "refused_400", cause: "token", bytes: 1)
    counts.countProbe("ok")
    counts.watch { ConnectionFigures() }
    counts.countEnrollment("ok")
    counts.countSealed("opened")
    counts.countDictionary("served")
    counts.countRecordChange("done")
    counts.countRecordQuestion("nothing")
    counts.set(CollectorCounts.CrashGauges(resolved: 1, regressed: 1))
    counts.set(.init(version: 1, faults: 0, devices: 1, failed: 0))
    var figures = OutputRunner.Figures()
    figures.isLeading = true
    counts.set(
      .init(
        store: StoreCounts(), storeFails: false, heldPackets: 0, memoryBytes: 0, outputs: [("x", figures)], now: 0))
    let page = counts.metrics
    let help = Dictionary(
      uniqueKeysWithValues: page.matches(of: /# HELP (\w+) (.+)/).map { (String($0.1), String($0.2)) })
    let served = page.matches(of: /# TYPE (\w+) (\w+)/).map { "\($0.1) \($0.2): \(help[String($0.1)] ?? "")" }
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/metrics.md").path
    let documented = try String(contentsOfFile: root, encoding: .utf8)
      .matches(of: /(?m)^\| `(prism_collector_\w+)`[^|]* \| (\w+)[^|]* \| (.+) \|$/).map { "\($0.1) \($0.2): \($0.3)" }
    #expect(served.sorted() == documented.sorted())
  }
}
