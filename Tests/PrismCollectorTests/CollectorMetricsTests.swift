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
      #"prism_collector_record_questions_total{outcome="all"} 0"#, "prism_collector_crashes_total 0",
    ] { #expect(counts.metrics.contains(line + "\n"), "\(line)") }
    counts.count(NamespaceName("shop"), outcome: "stored", bytes: 9)
    for (outcome, count) in [("stored", 1), ("refused_429", 0)] {
      let line = #"prism_collector_packets_total{namespace="shop",outcome="\#(outcome)"} \#(count)"#
      #expect(counts.metrics.contains(line + "\n"), "\(line)")
    }
  }

  @Test("a device is silent from a day after its last packet until a week after it")
  func silent() async throws {
    let rig = try PageRig()
    _ = try await rig.collector.store.take(StoreRig.packet([1], device: "a"))
    let day: Int64 = 86_400_000
    let streams = try await rig.collector.store.queries.streams(.everything, of: nil, limit: 10)
    let (devices, sent) = (DeviceSummary.all(of: streams), try #require(streams.first).receivedTime)
    let silent = [0, day - 1, day + 1, 7 * day - 1, 7 * day + 1].map {
      DeviceWatch.silent(devices, since: sent + $0 - day)
    }
    #expect(silent == [0, 0, 1, 1, 0])
    await DeviceWatch(collector: rig.collector).look()
    #expect(await rig.collector.metrics.contains("\nprism_collector_silent_devices 0\n"))
  }

  /// Series of docs/alerts.test.yml, which are made up, must be ones that a collector has.
  @Test("the tests of the alerts feed series that the collector exports, with its labels and their values")
  func alerts() async throws {
    let rig = try PageRig()
    await DeviceWatch(collector: rig.collector).look()
    let counts = rig.collector.counts
    counts.count(NamespaceName("shop"), outcome: "stored", bytes: 9)
    counts.watch { ConnectionFigures() }
    counts.set(CollectorCounts.CrashGauges(resolved: 1, regressed: 1))
    var figures = OutputRunner.Figures()
    figures.isLeading = true
    _ = await rig.collector.metrics
    var store = StoreCounts()
    store.skipped = ["kafka": 0]
    counts.set(
      .init(
        store: store, storeFails: false, heldPackets: 0, memoryBytes: 0,
        quotas: [.init(namespace: "shop", rows: 1, rowsMax: 2)], limitedDevices: 1,
        outputs: ["otlp", "kafka", "ndjson"].map { ($0, figures) },
        now: 0))
    let exported = Set(
      counts.metrics.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { Self.series(String($0)) })
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs/alerts.test.yml").path
    let fed = try String(contentsOfFile: root, encoding: .utf8).matches(of: /series: '(prism_collector_[^']+)'/)
    #expect(fed.count > 10)
    for match in fed {
      let series = Self.series(String(match.1))
      #expect(exported.contains(series), "\(series)")
    }
  }

  /// A sample without its value, and without the labels that a scrape adds.
  private static func series(_ line: String) -> String {
    let name = line.replacing(/\} .*/, with: "}").replacing(/^(\w+) .*/) { String($0.1) }
    let labels = name.matches(of: /(\w+)="([^"]*)"/).map { "\($0.1)=\($0.2)" }
    return
      "\(name.prefix { $0 != "{" }) \(labels.filter { !$0.hasPrefix("instance=") && !$0.hasPrefix("le=") }.sorted())"
  }

  @Test("docs/metrics.md has each metric of the collector with its type and its meaning, and no other")
  func documentation() throws {
    let counts = CollectorCounts()
    counts.count(.prism, outcome: "refused_400", cause: "token", bytes: 1)
    counts.count(.probes, "ok")
    counts.watch { ConnectionFigures() }
    counts.count(.enrollments, "ok")
    counts.count(.sealed, "opened")
    counts.count(.dictionaries, "served")
    counts.count(.recordChanges, "done")
    counts.count(.recordQuestions, "nothing")
    counts.set(silentDevices: 0)
    counts.set(CollectorCounts.CrashGauges(resolved: 1, regressed: 1))
    counts.set(.init(version: 1, faults: 0, devices: 1, failed: 0))
    var figures = OutputRunner.Figures()
    figures.isLeading = true
    counts.set(
      .init(
        store: StoreCounts(), storeFails: false, heldPackets: 0, memoryBytes: 0,
        quotas: [.init(namespace: "shop", rows: 1, rowsMax: 2)], limitedDevices: 1, outputs: [("x", figures)], now: 0))
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
