public import PrismAdmission
import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol
import PrismStore

// Writes the page `/metrics`; docs/metrics.md explains each metric.
extension Engine {
  /// - Parameter store: nil where the store does not answer: what it would tell is left out.
  public func metrics(
    store: StoreFigures?, ingest: IngestCounters, remote: RemoteFigures, process: ProcessFigures,
    commands: CommandCounts = .init(), version: String
  ) async -> String {
    var statuses: [(namespace: NamespaceName, status: PipelineStatus)] = []
    for (namespace, pipeline) in pipelines.sorted(by: { $0.key < $1.key }) {
      statuses.append((namespace, await pipeline.status))
    }
    var page = MetricsText()
    page.add(
      daemonMetrics,
      of: Scrape(
        version: version, ingest: ingest, commits: self.ingest.counters, health: storeHealth, answers: store != nil,
        hub: hub, remote: remote, network: parts.network.current, keyBlocksMax: parts.keys.blocksMax, process: process))
    if let store { add(store, of: statuses.map(\.namespace), to: &page) }
    page.add(keyMetrics, of: keyReports.map { (["key": $0.key.id], $0.report.blocks) })
    page.add(stateMetrics, of: statuses.map { (["namespace": $0.namespace.text], $0.status) })
    let kinds = statuses.flatMap { namespace, status in RowKind.all.map { (namespace.text, $0, status) } }
    page.add(packetMetrics, of: kinds.map { (["namespace": $0, "kind": $1.name], $2.counters[$1]) })
    page.add(windowMetrics, of: kinds.map { (["namespace": $0, "kind": $1.name], $2.windows[$1]) })
    page.add(pullMetrics, of: statuses.map { (["namespace": $0.namespace.text], $0.status.pulls.counters) })
    let commanded = Set(hub.current.namespaces.values.filter(\.hasCommands).map(\.name)).union(commands.ends.keys)
    page.add(commandMetrics, of: commanded.sorted().map { (["namespace": $0.text], commands.ends[$0] ?? [:]) })
    return page.text
  }

  /// - Parameter namespaces: there from the beginning, so that a rate never misses its first step.
  private func add(_ store: StoreFigures, of namespaces: [NamespaceName], to page: inout MetricsText) {
    let all = Set(store.queues.keys).union(namespaces).sorted()
    func queue(_ namespace: NamespaceName, _ kind: RowKind) -> QueueStatus {
      store.queues[namespace]?[kind] ?? QueueStatus(ledger: Ledger(), bytes: 0, oldestAge: nil)
    }
    let now = parts.time.unixMilliseconds
    page.add(storeMetrics, of: store.bytes)
    page.add(
      queueMetrics,
      of: all.flatMap { namespace in
        RowKind.reports.map { (["namespace": namespace.text, "kind": $0.name], queue(namespace, $0)) }
      })
    page.add(
      tableMetrics,
      of: store.records.sorted { $0.key < $1.key }.flatMap { namespace, tables in
        tables.map { (["namespace": namespace.text, "table": $0.name.text], (table: $0, now: now)) }
      })
    page.add(
      enrichmentMetrics,
      of: all.map {
        (["namespace": $0.text], (added: store.enriched[$0] ?? 0, missing: store.notEnriched[$0] ?? 0))
      })
    page.add(
      triggerMetrics,
      of: all.flatMap { namespace in
        Set(hub.current.namespaces[namespace]?.triggers.map(\.name) ?? []).union(
          (store.triggers[namespace] ?? [:]).keys
        )
        .sorted().map {
          (["namespace": namespace.text, "trigger": $0], store.triggers[namespace]?[$0] ?? TriggerState())
        }
      })
    page.add(filterMetrics, of: all.map { (["namespace": $0.text], queue($0, .meta).filtered) })
  }
}

/// The sources of metrics without a namespace.
private struct Scrape {
  let version: String, ingest: IngestCounters, commits: CommitCounters, health: StoreHealth, answers: Bool
  let hub: ConfigurationHub, remote: RemoteFigures, network: NetworkStatus, keyBlocksMax: Int, process: ProcessFigures
}

private let daemonMetrics: [Metric<Scrape>] = [
  .init(
    "prism_build_info", .gauge, "1; the label tells the daemon's version.",
    samples: { [([("version", $0.version)], 1)] }),
  .init("prism_ingest_connections", .gauge, "Open connections of the ingest socket.", \.ingest.connections),
  .init(
    "prism_ingest_accepted_connections_total", .counter, "Connections that the ingest socket took.",
    \.ingest.acceptedConnections),
  .init(
    "prism_ingest_refused_connections_total", .counter, "Connections that were answered busy and closed, by why.",
    by: "cause", \.ingest.refusedConnections),
  .init(
    "prism_ingest_closed_connections_total", .counter, "Connections that the daemon closed, by why.", by: "cause",
    \.ingest.closedConnections),
  .init(
    "prism_ingest_pauses_total", .counter, "Times that a connection was not read from, by why.", by: "cause",
    [("memory", true), ("answers", false)]
  ) { $1 ? $0.ingest.memoryPauses : $0.ingest.answerPauses },
  .init(
    "prism_ingest_memory_bytes", .gauge, "Requests, reports before their commit and answers in memory.",
    \.ingest.memoryBytes),
  .init("prism_ingest_memory_limit_bytes", .gauge, "What they may take, ingest.memoryMByte.", \.ingest.memoryBytesMax),
  .init("prism_input_requests_total", .counter, "Requests of other inputs than the ingest socket's own, by answer.") {
    $0.ingest.inputRequests.sorted { ($0.key.input, $0.key.status) < ($1.key.input, $1.key.status) }.map {
      ([("input", $0.key.input), ("status", String($0.key.status))], $0.value)
    }
  },
  .init("prism_messages_total", .counter, "Samples and messages of statsd and syslog; of dropped ones datagrams.") {
    $0.ingest.messages.sorted { ($0.key.input, $0.key.outcome.rawValue) < ($1.key.input, $1.key.outcome.rawValue) }
      .map { ([("input", $0.key.input), ("outcome", $0.key.outcome.rawValue)], $0.value) }
  },
  .init(
    "prism_ingest_foreign_total", .counter, "Connections that spoke a protocol which is not taken there.",
    by: "protocol", \.ingest.foreignProtocols),
  .init("prism_reports_received_total", .counter, "Reports that came, refused ones included.", \.ingest.tally.received),
  .init(
    "prism_reports_stored_total", .counter, "Reports that were answered stored, duplicates included.",
    \.ingest.tally.stored),
  .init(
    "prism_reports_repeated_total", .counter, "Reports that came again under a known id, and are stored once.",
    \.ingest.tally.repeated),
  .init(
    "prism_payloads_left_out_total", .counter, "Payloads that were too large and left out.",
    \.ingest.tally.leftOutPayloads),
  .init(
    "prism_reports_other_type_total", .counter, "Reports that became the type other, as their own is not taken.",
    \.ingest.tally.otherTypes),
  .init(
    "prism_reports_refused_total", .counter, "Reports that were refused, by the code that was answered.", by: "code",
    \.ingest.tally.refused),
  .init(
    "prism_commit_duration_seconds", .histogram, "From handing reports to the store to its answer.", \.commits.duration),
  .init("prism_commit_rows", .histogram, "Reports of one commit.", \.commits.rows),
  .init("prism_commit_failures_total", .counter, "Commits of reports that the store did not make.", \.commits.failures),
  .init("prism_store_state", "1 for the state that the store is in.", is: "state", \.health.state),
  .init("prism_store_faults_total", .counter, "Uses of the database that failed.", \.health.faults),
  .init("prism_store_set_aside_total", .counter, "Damaged databases that were set aside.", \.health.setAside),
  .init("prism_configuration_generation", .gauge, "Of the configuration in force.", \.hub.generation),
  .init("prism_configuration_failed_reloads_total", .counter, "Reloads that were refused.", \.hub.failedReloads),
  .init("prism_configuration_faults", .gauge, "Faults of the last reload, until a good one.", \.hub.faults.count),
  .init("prism_remote_version", .gauge, "Number of the remote configuration in force; 0 without one.") {
    Int($0.remote.number)
  },
  .init(
    "prism_remote_namespaces", .gauge, "Namespaces that remote configuration says something of.", \.remote.namespaces),
  .init("prism_remote_probation", .gauge, "Those whose packets are still to prove it.", \.remote.onProbation),
  .init(
    "prism_remote_refused", .gauge, "1 while what the server said last is refused or was taken back.",
    \.remote.isRefused),
  .init(
    "prism_remote_results_total", .counter, "Questions for remote configuration, by what came of them.", by: "result",
    \.remote.results),
  .init("prism_remote_last_success_timestamp_seconds", .gauge, "When an answer was last taken; 0: never.") {
    Double($0.remote.lastAnswerMilliseconds) / 1000
  },
  .init("process_cpu_seconds_total", .counter, "Time on a processor, user and system.", \.process.cpuSeconds),
  .init("process_resident_memory_bytes", .gauge, "Memory that is resident.", \.process.residentBytes),
  .init("process_virtual_memory_bytes", .gauge, "Address space.", \.process.virtualBytes),
  .init("process_open_fds", .gauge, "Open descriptors.", \.process.openDescriptors),
  .init("process_max_fds", .gauge, "The limit of open descriptors.", \.process.descriptorsMax),
  .init("process_threads", .gauge, "Threads.", \.process.threads),
  .init("process_start_time_seconds", .gauge, "When the process began, since 1970.", \.process.startSeconds),
  .init(
    "prism_store_answers", .gauge, "1 where the store answered this scrape; else its figures are missing.", \.answers),
  .init("prism_network_state", "1 for what the network counts as.", is: "state", \.network.kind),
  .init("prism_key_blocks_limit", .gauge, "The most blocks that one key may encrypt.", \.keyBlocksMax),
]

// MARK: Rows

private let storeMetrics: [Metric<Int>] = [
  .init("prism_store_bytes", .gauge, "Size of the database and its log.", { $0 })
]

private let queueMetrics: [Metric<QueueStatus>] = [
  .init(
    "prism_rows", .gauge, "Rows in the store, by their state.", by: "state",
    [Ledger.Account.waiting, .claimed, .dead, .kept]
  ) { $0.ledger[$1] },
  .init("prism_stored_rows_total", .counter, "Rows that were ever stored, through restarts.", \.ledger.stored),
  .init(
    "prism_settled_rows_total", .counter, "Rows that left the store, by how, through restarts.", by: "result",
    [Ledger.Account.delivered, .expired, .evicted, .cleared, .removed, .corrupt, .overwritten]
  ) { $0.ledger[$1] },
  .init("prism_queue_bytes", .gauge, "Size of the rows in the store, without kept ones.", \.bytes),
  .init("prism_kept_bytes", .gauge, "Size of the rows that are kept in the ring.", \.keptBytes),
  .init("prism_memory_bytes", .gauge, "Size of those that are kept in memory.", \.inMemory.bytes),
  .init(
    "prism_memory_lost_rows_total", .counter, "Rows that were kept in memory and lost with the machine's power.",
    \.inMemory.lost),
  .init(
    "prism_oldest_waiting_age_seconds", .gauge,
    "Age of the oldest row that waits or is claimed; 0 without such a row."
  ) { $0.oldestAge.map { $0 / .seconds(1) } ?? 0.0 },
]

private let filterMetrics: [Metric<FilterCounts>] = [
  .init("prism_sampled_reports_total", .counter, "Reports that sample left out, through restarts.", \.sampled),
  .init(
    "prism_collapsed_reports_total", .counter, "Reports that collapse counted on a row, through restarts.",
    \.collapsed),
  .init(
    "prism_forgotten_report_ids_total", .counter,
    "Ids of reports that were forgotten early, so that a repetition is stored again, through restarts.",
    \.forgottenIDs),
  .init(
    "prism_forgotten_groups_total", .counter,
    "Gauges and streams of reduced reports that were forgotten early, as groups had no room, through restarts.",
    \.forgottenGroups),
]

private let triggerMetrics: [Metric<TriggerState>] = [
  .init(
    "prism_triggers_total", .counter, "Times that a trigger fired, or was to fire, through restarts.", by: "result",
    [("fired", \TriggerState.fired), ("over_budget", \.overBudget), ("too_soon", \.tooSoon), ("declined", \.declined)]
  ) { $0[keyPath: $1] },
  .init("prism_triggered_rows_total", .counter, "Kept rows that a trigger let go, through restarts.", \.rows),
]

/// Tables of records that ever held a record.
private let tableMetrics: [Metric<(table: RecordTableStatus, now: Int64)>] = [
  .init("prism_records", .gauge, "Records in a table, those that wait for their deletion among them.") {
    $0.table.records
  },
  .init(
    "prism_records_kept", .gauge, "Records that the store which answers lacks, and that are kept.", \.table.kept),
  .init(
    "prism_record_changes", .gauge, "Changes of records that the server does not have, by their state.", by: "state",
    [("waiting", Ledger.Account.waiting), ("in_flight", .claimed)]
  ) { $0.table.ledger[$1] },
  .init("prism_put_record_changes_total", .counter, "Changes of records that programs made, through restarts.") {
    $0.table.ledger.stored
  },
  .init(
    "prism_settled_record_changes_total", .counter, "Changes of records that are settled, by how, through restarts.",
    by: "result",
    [("confirmed", Ledger.Account.delivered), ("merged", .removed), ("refused", .dead), ("corrupt", .corrupt)]
  ) { $0.table.ledger[$1] },
  .init(
    "prism_record_age_seconds", .gauge, "Time since the server last said that its changes of a table are all here."
  ) { source in source.table.down?.heldTime.map { max(0, Double(source.now - $0)) / 1000 } },
  .init(
    "prism_record_conflicts_total", .counter,
    "Records that this device and the server had changed, by the side whose change held, through restarts.", by: "held",
    [("here", true), ("server", false)]
  ) { source, isHere in source.table.down.map { isHere ? $0.keptLocal : $0.keptRemote } },
]

private let enrichmentMetrics: [Metric<(added: Int, missing: Int)>] = [
  .init(
    "prism_enriched_reports_total", .counter, "Reports that were to get fields of a record, by whether it was there.",
    by: "result", [("added", true), ("missing", false)]
  ) { $1 ? $0.added : $0.missing }
]

/// Questions for the server's changes of records.
private let pullMetrics: [Metric<PullCounters>] = [
  .init(
    "prism_record_questions_total", .counter, "Questions for the server's changes of records, by what came of them.",
    by: "result", \.questions),
  .init(
    "prism_record_operations_total", .counter, "Operations of the server, and records of whole tables, that came.",
    \.executed),
  .init(
    "prism_record_question_bytes_total", .counter, "Bytes of the questions and their answers on the wire.", \.bytes),
]

private let commandMetrics: [Metric<[String: Int]>] = [
  .init(
    "prism_commands_total", .counter, "Commands of the server that ended, by how, or why they were refused.",
    by: "result", CommandCounts.results.map { ($0, $0) }
  ) { $0[$1] ?? 0 }
]

private let keyMetrics: [Metric<Int>] = [
  .init(
    "prism_key_blocks", .gauge, "Blocks that the key has encrypted on this device, through restarts.", { $0 })
]

// MARK: Delivery

private let stateMetrics: [Metric<PipelineStatus>] = [
  .init(
    "prism_circuit_open", .gauge, "1 while the collector is only probed, after failures in a row.", \.circuitIsOpen),
  .init("prism_namespace_held", .gauge, "1 while only an operator can make delivery go on.", \.isHeld),
  .init(
    "prism_namespace_retired", .gauge, "1 where rows are kept of a namespace that is configured no more.", \.isRetired),
  .init("prism_last_success_timestamp_seconds", .gauge, "When a packet was last delivered; 0: not since the start.") {
    Double($0.lastSuccess ?? 0) / 1000
  },
  .init(
    "prism_flow_used_bytes", .gauge, "Sent and received over metered networks in the current window.", \.flow.usedBytes),
  .init("prism_flow_allowed_bytes", .gauge, "What a window allows over metered networks.", \.flow.allowedBytes),
]

private let packetMetrics: [Metric<EngineCounters>] = [
  .init(
    "prism_packets_total", .counter, "Attempts to deliver a packet, by what came of them.", by: "result", \.packets),
  .init("prism_retries_total", .counter, "Attempts after a packet's first.", \.retries),
  .init("prism_raw_bytes_total", .counter, "Reports in packets, before compression.", \.bytesRaw),
  .init("prism_packed_bytes_total", .counter, "Packets' bodies, compressed and encrypted.", \.bytesPacked),
  .init("prism_sent_bytes_total", .counter, "Sent to collectors, headers and repetitions included.", \.bytesSent),
  .init("prism_received_bytes_total", .counter, "Received from collectors, headers included.", \.bytesReceived),
  .init("prism_post_duration_seconds", .histogram, "Duration of a POST, with any result.", \.postDuration),
]

private let windowMetrics: [Metric<SendWindow>] = [
  .init("prism_send_window_packets", .gauge, "Packets that may be on their way at a time.", \.packets),
  .init("prism_round_trip_seconds", .gauge, "Round trip of the collector's connections, by TCP; 0 if unknown.") {
    ($0.line.roundTrip ?? .zero) / .seconds(1)
  },
  .init("prism_least_round_trip_seconds", .gauge, "The round trip without a queue on the line; 0 if unknown.") {
    ($0.line.least ?? .zero) / .seconds(1)
  },
]
