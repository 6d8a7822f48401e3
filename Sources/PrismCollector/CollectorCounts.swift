import PrismProtocol
import Synchronization

/// What the collector did, by namespace and outcome: for `/metrics` and `SIGUSR1`.
final class CollectorCounts: Sendable {
  private struct Key: Hashable { let namespace: String, outcome: String }
  private struct State {
    var packets: [Key: Int] = [:]
    var reports: [String: Int] = [:]
    var bytes = 0
  }
  private let state = Mutex(State())
  /// Names come from senders: a bounded number of them is told apart.
  private static let namespacesMax = 1000

  func count(_ namespace: NamespaceName?, outcome: String, reports: Int = 0, bytes: Int) {
    state.withLock { state in
      var name = namespace?.text ?? ""
      if state.reports[name] == nil && state.reports.count >= Self.namespacesMax { name = "other" }
      state.packets[Key(namespace: name, outcome: outcome), default: 0] += 1
      state.reports[name, default: 0] += reports
      state.bytes += bytes
    }
  }

  /// Prometheus' text format.
  var metrics: String {
    let state = state.withLock { $0 }
    var page = MetricsText()
    page.begin("prism_collector_packets_total", .counter, "Packets by namespace and what became of them.")
    let packets = state.packets.sorted { ($0.key.namespace, $0.key.outcome) < ($1.key.namespace, $1.key.outcome) }
    for (key, count) in packets {
      page.sample(count, ["namespace": key.namespace, "outcome": key.outcome])
    }
    page.begin("prism_collector_reports_total", .counter, "Reports stored.")
    for (namespace, count) in state.reports.sorted(by: { $0.key < $1.key }) {
      page.sample(count, ["namespace": namespace])
    }
    page.begin("prism_collector_received_bytes_total", .counter, "Bytes of packets' bodies.")
    page.sample(state.bytes)
    return page.text
  }
}
