import PrismHTTP
import PrismProtocol
import Synchronization

/// Counts the collector's results, by namespace and outcome: for `/metrics` and `SIGUSR1`.
final class CollectorCounts: Sendable {
  private struct Key: Hashable { let namespace: String, outcome: String }
  private struct State {
    var packets: [Key: Int] = [:]
    var reports: [String: Int] = [:]
    var causes: [String: Int] = [:]
    var totals = (bytes: 0, crashes: 0)
    var lostOperations = 0
    var outcomes: [Counter: [String: Int]] = [:]
    var gauges = Gauges()
    /// Of senders.
    var connections: (@Sendable () -> ConnectionFigures?)?

    subscript(_ counter: Counter) -> [String: Int] { outcomes[counter, default: [:]] }
  }

  /// A count by its outcome alone.
  enum Counter: Sendable {
    case questions, probes, enrollments, sealed, dictionaries, intents, recordQuestions, recordChanges
  }

  /// The last state of what is not counted.
  private struct Gauges {
    var crashes: CrashGauges?
    var remote: RemoteGauges?
    var service: ServiceGauges?
    var silentDevices: Int?
  }

  /// How the store and the outputs are.
  struct ServiceGauges: Sendable {
    var store: StoreCounts?
    var storeFails: Bool
    var heldPackets: Int, memoryBytes: Int
    var quotas: [Quotas.Figure]
    var limitedDevices: Int
    var outputs: [(name: String, figures: OutputRunner.Figures)]
    /// Milliseconds since 1970.
    var now: Int64
  }

  /// Groups of crashes by the state that operators gave them.
  struct CrashGauges: Sendable, Equatable {
    var resolved: Int, regressed: Int
  }

  struct RemoteGauges: Sendable, Equatable {
    var version: Int64
    var faults: Int, devices: Int, failed: Int
  }

  /// Values of labels that have a counter before their first event: `increase` sees no first one.
  private enum Known {
    static let causes =
      PacketRefusal.allCases.map(\.rawValue) + [403, 404, 405, 409, 425, 429, 500, 503, 507].map { "status\($0)" }
    static let packets = ["stored", "duplicate", "refused_429", "refused_503", "refused_507"]
  }

  private let state = Mutex(State())
  /// Names come from senders, so only a bounded number of them has counts of its own.
  private static let namespacesMax = 1000

  /// - Parameter namespace: nil: nothing proves that the packet is of it.
  /// - Parameter cause: why the packet was refused.
  func count(_ namespace: NamespaceName?, outcome: String, cause: String? = nil, reports: Int = 0, bytes: Int) {
    state.withLock { state in
      if let cause { state.causes[cause, default: 0] += 1 }
      var name = namespace?.text ?? ""
      if state.reports[name] == nil && state.reports.count >= Self.namespacesMax { name = "other" }
      if state.reports[name] == nil {
        for known in Known.packets { state.packets[Key(namespace: name, outcome: known)] = 0 }
      }
      state.packets[Key(namespace: name, outcome: outcome), default: 0] += 1
      state.reports[name, default: 0] += reports
      state.totals.bytes += bytes
    }
  }

  func count(_ counter: Counter, _ outcome: String, _ count: Int = 1) {
    state.withLock { $0.outcomes[counter, default: [:]][outcome, default: 0] += count }
  }
  func countLostOperations(_ count: Int) { state.withLock { $0.lostOperations += count } }
  func countCrashes(_ count: Int) { state.withLock { $0.totals.crashes += count } }
  func set(silentDevices count: Int) { state.withLock { $0.gauges.silentDevices = count } }
  func watch(_ connections: @escaping @Sendable () -> ConnectionFigures?) {
    state.withLock { $0.connections = connections }
  }
  func set(_ gauges: CrashGauges) { state.withLock { $0.gauges.crashes = gauges } }
  func set(_ gauges: RemoteGauges) { state.withLock { $0.gauges.remote = gauges } }
  func set(_ gauges: ServiceGauges) { state.withLock { $0.gauges.service = gauges } }

  /// Packets since the start, by what became of them.
  var outcomes: [String: Int] {
    state.withLock { $0.packets.reduce(into: [:]) { $0[$1.key.outcome, default: 0] += $1.value } }
  }

  /// Packets that were refused since the start, by cause.
  var refusals: [String: Int] { state.withLock { $0.causes } }

  /// Prometheus' text format.
  var metrics: String {
    let state = state.withLock { $0 }
    var page = MetricsText()
    page.add(Self.all, of: state)
    if let connections = state.connections?() { page.add(Self.ofConnections, of: connections) }
    if let service = state.gauges.service {
      page.add(Self.ofService, of: service)
      if let store = service.store { page.add(Self.ofStore, of: store) }
      let outputs = service.outputs.map { output in
        (
          labels: ["output": output.name] as KeyValuePairs,
          source: Output(figures: output.figures, skipped: service.store?.skipped[output.name], now: service.now)
        )
      }
      page.add(Self.ofOutputs, of: outputs)
    }
    if let crashes = state.gauges.crashes { page.add(Self.ofCrashes, of: crashes) }
    if let remote = state.gauges.remote {
      page.add(Self.ofQuestions, of: state)
      page.add(Self.ofRemote, of: remote)
    }
    return page.text
  }

  // MARK: The tables

  private static let all: [Metric<State>] = [
    .init("prism_collector_packets_total", .counter, "Packets by namespace and what became of them.") {
      $0.packets.sorted { ($0.key.namespace, $0.key.outcome) < ($1.key.namespace, $1.key.outcome) }.map {
        ([("namespace", $0.key.namespace), ("outcome", $0.key.outcome)], $0.value)
      }
    },
    .init(
      "prism_collector_refusals_total", .counter, "Packets refused, by cause.", by: "cause", known: Known.causes,
      \.causes),
    .init("prism_collector_reports_total", .counter, "Reports stored.", by: "namespace", known: [], \.reports),
    .init("prism_collector_crashes_total", .counter, "Reports of crashes that were stored.", \.totals.crashes),
    .init("prism_collector_silent_devices", .gauge, "Devices that sent in the last 7 days, not in the last 24 hours.") {
      $0.gauges.silentDevices
    },
    .init("prism_collector_received_bytes_total", .counter, "Bytes of packets' bodies.", \.totals.bytes),
    .init(
      "prism_collector_probes_total", .counter, "Probes of `prismctl doctor`, by outcome.", by: "outcome",
      known: ["ok", "would_refuse", "refused_400"], \.[.probes]),
    .init(
      "prism_collector_enrollments_total", .counter, "Devices that asked for their key, by outcome.", by: "outcome",
      known: ["enrolled", "refused_401", "refused_403", "refused_429"], \.[.enrollments]),
    .init(
      "prism_collector_sealed_payloads_total", .counter, "Sealed payloads: opened, or kept for want of their key.",
      by: "outcome", known: ["opened", "kept"], \.[.sealed]),
    .init(
      "prism_collector_dictionary_questions_total", .counter, "Questions for a dictionary, by outcome.", by: "outcome",
      known: ["served", "none"], \.[.dictionaries]),
    .init(
      "prism_collector_intents_total", .counter, "Questions whether reports of a trigger may leave, by outcome.",
      by: "outcome", known: ["leaves", "enough", "uncounted"], \.[.intents]),
    .init(
      "prism_collector_record_conflicts_total", .counter,
      "Operations of devices that lost against a newer change of the server's.", \.lostOperations),
    .init(
      "prism_collector_record_changes_total", .counter, "Changes of records by the server, by result.", by: "outcome",
      known: ["done", "refused"], \.[.recordChanges]),
    .init(
      "prism_collector_record_questions_total", .counter, "Devices' questions for records, by outcome.", by: "outcome",
      known: ["nothing", "operations", "all"], \.[.recordQuestions]),
  ]

  private static let ofConnections: [Metric<ConnectionFigures>] = [
    .init(
      "prism_collector_connections", .gauge, "Connections of senders, by whether one proved itself on it.",
      by: "sender", [("proven", true), ("unproven", false)]
    ) { $1 ? $0.proven : $0.unproven },
    .init(
      "prism_collector_connections_refused_total", .counter,
      "Connections closed for others at connectionMax, or for a slow body.", by: "reason", \.closed),
  ]

  private static let ofService: [Metric<ServiceGauges>] = [
    .init("prism_collector_store_failing", .gauge, "1: the last call of the store failed.", \.storeFails),
    .init("prism_collector_held_packets", .gauge, "Packets that wait for their predecessor.", \.heldPackets),
    .init("prism_collector_packet_memory_bytes", .gauge, "Memory of the packets that are open.", \.memoryBytes),
    .init(
      "prism_collector_limited_devices", .gauge, "Devices that sent what they may in a day, and wait for the next one.",
      \.limitedDevices),
    .init("prism_collector_quota_rows", .gauge, "Reports at rest of the fullest namespaces that have a quota.") {
      $0.quotas.map { ([("namespace", $0.namespace)], Int($0.rows)) }
    },
    .init("prism_collector_quota_max_rows", .gauge, "Their quotas.") {
      $0.quotas.map { ([("namespace", $0.namespace)], Int($0.rowsMax)) }
    },
  ]

  private static let ofStore: [Metric<StoreCounts>] = [
    .init(
      "prism_collector_store_info", .gauge,
      "1; the label is the store's identity, which devices know, since the first packet.",
      samples: { counts in counts.mark.map { [([("store", $0.description)], 1)] } ?? [] }),
    .init("prism_collector_group_packets_total", .counter, "Packets in the groups that were committed.", \.packets),
    .init(
      "prism_collector_group_retries_total", .counter, "Groups that were tried again after a deadlock.", \.retries),
    .init("prism_collector_group_seconds", .histogram, "From the start of a group to its commit.") {
      Histogram(edges: StoreCounts.edges, counts: $0.buckets, sum: $0.seconds)
    },
  ]

  private struct Output {
    var figures: OutputRunner.Figures
    /// nil: the store does not tell.
    var skipped: Int?
    var now: Int64
  }

  private static let ofOutputs: [Metric<Output>] = [
    .init(
      "prism_collector_output_reports_total", .counter, "Reports handed on, by output and outcome.", by: "outcome",
      [("delivered", true), ("refused", false)]
    ) { $1 ? $0.figures.delivered : $0.figures.refused },
    .init(
      "prism_collector_output_skipped_reports_total", .counter, "Reports deleted though an output had not taken them.",
      \.skipped),
    .init(
      "prism_collector_output_dead_reports", .gauge, "Reports that an output refused, and whose dead letters are kept."
    ) {
      $0.figures.isLeading ? $0.figures.dead.reports : nil
    },
    .init(
      "prism_collector_output_holds", .gauge, "1: the output takes no reports now; the log and /readyz say why."
    ) { $0.figures.holds != nil },
    .init("prism_collector_output_failures_total", .counter, "Tries of an output that failed.", \.figures.failures),
    .init("prism_collector_output_leading", .gauge, "1: this replica feeds the output.", \.figures.isLeading),
    .init("prism_collector_output_lag_seconds", .gauge, "Age of the oldest report that an output has not taken.") {
      $0.figures.isLeading ? Double(max(0, $0.now - ($0.figures.waitingSince ?? $0.now))) / 1000 : nil
    },
  ]

  private static let ofCrashes: [Metric<CrashGauges>] = [
    .init(
      "prism_collector_crash_groups", .gauge, "Groups of crashes that are resolved, and that came back since.",
      by: "state", [("resolved", true), ("regressed", false)]
    ) { $1 ? $0.resolved : $0.regressed }
  ]

  private static let ofQuestions: [Metric<State>] = [
    .init(
      "prism_collector_config_questions_total", .counter, "Questions for remote configuration by outcome.",
      by: "outcome", known: ["whole", "again"], \.[.questions])
  ]

  private static let ofRemote: [Metric<RemoteGauges>] = [
    .init("prism_collector_config_version", .gauge, "Version of the remote configuration that is served.") {
      Int($0.version)
    },
    .init("prism_collector_config_faults", .gauge, "Faults of the folder, whose last sound state is served.", \.faults),
    .init("prism_collector_config_devices", .gauge, "Devices that asked in the last 30 days.", \.devices),
    .init(
      "prism_collector_config_devices_failed", .gauge, "Those that refused or took back what they were offered.",
      \.failed),
  ]
}
