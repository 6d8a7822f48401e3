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
    var questions: [String: Int] = [:]
    var probes: [String: Int] = [:]
    var enrollments: [String: Int] = [:]
    var sealed: [String: Int] = [:]
    var dictionaries: [String: Int] = [:]
    var records = RecordCounts()
    var gauges = Gauges()
    /// Of senders.
    var connections: (@Sendable () -> ConnectionFigures?)?
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
    var outputs: [(name: String, figures: OutputRunner.Figures)]
    /// Milliseconds since 1970.
    var now: Int64
  }

  /// Records that the server changes.
  private struct RecordCounts {
    /// Operations of devices that lost.
    var lost = 0
    var questions: [String: Int] = [:]
    var changes: [String: Int] = [:]
  }

  /// Groups of crashes by the state that operators gave them.
  struct CrashGauges: Sendable, Equatable {
    var resolved: Int, regressed: Int
  }

  /// The state of remote configuration.
  struct RemoteGauges: Sendable, Equatable {
    var version: Int64
    var faults: Int, devices: Int, failed: Int
  }

  /// Values of labels that have a counter before their first event: `increase` sees no first one.
  private enum Known {
    static let causes =
      PacketRefusal.allCases.map(\.rawValue) + [403, 404, 405, 409, 425, 429, 500, 503].map { "status\($0)" }
    static let packets = ["stored", "duplicate", "refused_429", "refused_503"]
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

  func countProbe(_ outcome: String) { state.withLock { $0.probes[outcome, default: 0] += 1 } }
  func countEnrollment(_ outcome: String) { state.withLock { $0.enrollments[outcome, default: 0] += 1 } }
  func countSealed(_ outcome: String) { state.withLock { $0.sealed[outcome, default: 0] += 1 } }
  func countDictionary(_ outcome: String) { state.withLock { $0.dictionaries[outcome, default: 0] += 1 } }
  func countLostOperations(_ count: Int) { state.withLock { $0.records.lost += count } }
  func countRecordQuestion(_ outcome: String) { state.withLock { $0.records.questions[outcome, default: 0] += 1 } }
  func countRecordChange(_ result: String, _ count: Int = 1) {
    state.withLock { $0.records.changes[result, default: 0] += count }
  }
  func countCrashes(_ count: Int) { state.withLock { $0.totals.crashes += count } }
  func set(silentDevices count: Int) { state.withLock { $0.gauges.silentDevices = count } }
  func countQuestion(_ outcome: String) { state.withLock { $0.questions[outcome, default: 0] += 1 } }
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
    page.begin("prism_collector_packets_total", .counter, "Packets by namespace and what became of them.")
    let packets = state.packets.sorted { ($0.key.namespace, $0.key.outcome) < ($1.key.namespace, $1.key.outcome) }
    for (key, count) in packets {
      page.sample(count, ["namespace": key.namespace, "outcome": key.outcome])
    }
    Self.add(
      state.causes, "prism_collector_refusals_total", "Packets refused, by cause.", label: "cause",
      known: Known.causes, to: &page)
    page.begin("prism_collector_reports_total", .counter, "Reports stored.")
    for (namespace, count) in state.reports.sorted(by: { $0.key < $1.key }) {
      page.sample(count, ["namespace": namespace])
    }
    page.begin("prism_collector_crashes_total", .counter, "Reports of crashes that were stored.")
    page.sample(state.totals.crashes)
    if let silent = state.gauges.silentDevices {
      page.begin(
        "prism_collector_silent_devices", .gauge,
        "Devices that sent in the last 7 days, not in the last 24 hours."
      )
      page.sample(silent)
    }
    page.begin("prism_collector_received_bytes_total", .counter, "Bytes of packets' bodies.")
    page.sample(state.totals.bytes)
    if let connections = state.connections?() { Self.add(connections, to: &page) }
    if let service = state.gauges.service { Self.add(service, to: &page) }
    Self.add(
      state.probes, "prism_collector_probes_total", "Probes of `prismctl doctor`, by outcome.",
      known: ["ok", "would_refuse", "refused_400"], to: &page)
    Self.add(
      state.enrollments, "prism_collector_enrollments_total", "Devices that asked for their key, by outcome.",
      known: ["enrolled", "refused_401", "refused_403", "refused_429"], to: &page)
    Self.add(
      state.sealed, "prism_collector_sealed_payloads_total", "Sealed payloads: opened, or kept for want of their key.",
      known: ["opened", "kept"], to: &page)
    Self.add(
      state.dictionaries, "prism_collector_dictionary_questions_total", "Questions for a dictionary, by outcome.",
      known: ["served", "none"], to: &page)
    Self.add(state.records, to: &page)
    if let crashes = state.gauges.crashes { Self.add(crashes, to: &page) }
    if let gauges = state.gauges.remote { Self.add(gauges, state.questions, to: &page) }
    return page.text
  }

  /// - Parameter known: values that are there before their first event.
  private static func add(
    _ counts: [String: Int], _ name: String, _ meaning: String, label: String = "outcome", known: [String],
    to page: inout MetricsText
  ) {
    page.begin(name, .counter, meaning)
    for value in Set(known).union(counts.keys).sorted() { page.sample(counts[value] ?? 0, [label: value]) }
  }

  private static func add(_ connections: ConnectionFigures, to page: inout MetricsText) {
    page.begin("prism_collector_connections", .gauge, "Connections of senders, by whether one proved itself on it.")
    page.sample(connections.proven, ["sender": "proven"])
    page.sample(connections.unproven, ["sender": "unproven"])
    page.begin(
      "prism_collector_connections_refused_total", .counter,
      "Connections closed for others at connectionMax, or for a slow body.")
    for reason in CrowdedReason.allCases { page.sample(connections.closed[reason] ?? 0, ["reason": reason.rawValue]) }
  }

  private static func add(_ records: RecordCounts, to page: inout MetricsText) {
    page.begin(
      "prism_collector_record_conflicts_total", .counter,
      "Operations of devices that lost against a newer change of the server's.")
    page.sample(records.lost)
    add(
      records.changes, "prism_collector_record_changes_total", "Changes of records by the server, by result.",
      known: ["done", "refused"], to: &page)
    add(
      records.questions, "prism_collector_record_questions_total", "Devices' questions for records, by outcome.",
      known: ["nothing", "operations", "all"], to: &page)
  }

  private static func add(_ crashes: CrashGauges, to page: inout MetricsText) {
    page.begin(
      "prism_collector_crash_groups", .gauge, "Groups of crashes that are resolved, and that came back since.")
    page.sample(crashes.resolved, ["state": "resolved"])
    page.sample(crashes.regressed, ["state": "regressed"])
  }

  private static func add(_ service: ServiceGauges, to page: inout MetricsText) {
    page.begin("prism_collector_store_failing", .gauge, "1: the last call of the store failed.")
    page.sample(service.storeFails ? 1 : 0)
    page.begin("prism_collector_held_packets", .gauge, "Packets that wait for their predecessor.")
    page.sample(service.heldPackets)
    page.begin("prism_collector_packet_memory_bytes", .gauge, "Memory of the packets that are open.")
    page.sample(service.memoryBytes)
    if let store = service.store { add(store, to: &page) }
    page.begin("prism_collector_output_reports_total", .counter, "Reports handed on, by output and outcome.")
    for (name, figures) in service.outputs {
      page.sample(figures.delivered, ["output": name, "outcome": "delivered"])
      page.sample(figures.refused, ["output": name, "outcome": "refused"])
    }
    if let skipped = service.store?.skipped, !service.outputs.isEmpty {
      page.begin(
        "prism_collector_output_skipped_reports_total", .counter, "Reports deleted though an output had not taken them."
      )
      for (name, _) in service.outputs { page.sample(skipped[name] ?? 0, ["output": name]) }
    }
    page.begin("prism_collector_output_dead_reports", .gauge, "Dead letters of an output.")
    for (name, figures) in service.outputs where figures.isLeading { page.sample(figures.dead, ["output": name]) }
    page.begin(
      "prism_collector_output_holds", .gauge, "1: the output takes no reports now; the log and /readyz say why.")
    for (name, figures) in service.outputs { page.sample(figures.holds == nil ? 0 : 1, ["output": name]) }
    page.begin("prism_collector_output_failures_total", .counter, "Tries of an output that failed.")
    for (name, figures) in service.outputs { page.sample(figures.failures, ["output": name]) }
    page.begin("prism_collector_output_leading", .gauge, "1: this replica feeds the output.")
    for (name, figures) in service.outputs { page.sample(figures.isLeading ? 1 : 0, ["output": name]) }
    page.begin("prism_collector_output_lag_seconds", .gauge, "Age of the oldest report that an output has not taken.")
    for (name, figures) in service.outputs where figures.isLeading {
      page.sample(Double(max(0, service.now - (figures.waitingSince ?? service.now))) / 1000, ["output": name])
    }
  }

  private static func add(_ store: StoreCounts, to page: inout MetricsText) {
    page.begin("prism_collector_group_packets_total", .counter, "Packets in the groups that were committed.")
    page.sample(store.packets)
    page.begin("prism_collector_group_retries_total", .counter, "Groups that were tried again after a deadlock.")
    page.sample(store.retries)
    page.begin("prism_collector_group_seconds", .histogram, "From the start of a group to its commit.")
    page.histogram(edges: StoreCounts.edges, counts: store.buckets, sum: store.seconds)
  }

  private static func add(_ gauges: RemoteGauges, _ questions: [String: Int], to page: inout MetricsText) {
    add(
      questions, "prism_collector_config_questions_total", "Questions for remote configuration by outcome.",
      known: ["whole", "again"], to: &page)
    page.begin("prism_collector_config_version", .gauge, "Version of the remote configuration that is served.")
    page.sample(Int(gauges.version))
    page.begin("prism_collector_config_faults", .gauge, "Faults of the folder, whose last sound state is served.")
    page.sample(gauges.faults)
    page.begin("prism_collector_config_devices", .gauge, "Devices that asked in the last 30 days.")
    page.sample(gauges.devices)
    page.begin(
      "prism_collector_config_devices_failed", .gauge, "Those that refused or took back what they were offered.")
    page.sample(gauges.failed)
  }
}
