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
    let packets = state.packets.map {
      #"prism_collector_packets_total{namespace="\#($0.key.namespace)",outcome="\#($0.key.outcome)"} \#($0.value)"#
    }
    let reports = state.reports.map { #"prism_collector_reports_total{namespace="\#($0.key)"} \#($0.value)"# }
    return
      ([
        "# HELP prism_collector_packets_total Packets by namespace and what became of them.",
        "# TYPE prism_collector_packets_total counter",
      ] + packets.sorted() + [
        "# HELP prism_collector_reports_total Reports stored.", "# TYPE prism_collector_reports_total counter",
      ] + reports.sorted() + [
        "# HELP prism_collector_received_bytes_total Bytes of packets' bodies.",
        "# TYPE prism_collector_received_bytes_total counter", "prism_collector_received_bytes_total \(state.bytes)",
      ]).joined(separator: "\n") + "\n"
  }
}
