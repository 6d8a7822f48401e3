public import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore

// Writes the page `/metrics`; docs/metrics.md explains each metric.
extension Engine {
  /// - Parameter store: nil where the store does not answer: what it would tell is left out.
  public func metrics(
    store: StoreFigures?, ingest: IngestCounters, remote: RemoteFigures, process: ProcessFigures,
    commands: CommandCounts = .init(), version: String
  ) async -> String {
    var deliveries: [(namespace: NamespaceName, status: PipelineStatus)] = []
    for (namespace, pipeline) in pipelines.sorted(by: { $0.key < $1.key }) {
      deliveries.append((namespace, await pipeline.status))
    }
    // There from the beginning, so that a rate never misses its first step.
    var store = store
    for (namespace, _) in deliveries where store?.queues[namespace] == nil { store?.queues[namespace] = [:] }
    var page = MetricsText()
    page.addBuild(version)
    page.add(ingest)
    page.add(self.ingest.counters)
    page.add(storeHealth)
    page.add(store, now: parts.time.unixMilliseconds)
    page.add(hub)
    page.add(remote)
    page.add(parts.network.current)
    page.add(keyReports, keyBlocksMax: parts.keys.blocksMax)
    page.addStates(deliveries)
    page.addPackets(deliveries)
    page.addWindows(deliveries)
    page.add(deliveries.map { ($0.namespace.text, $0.status.pulls.counters) })
    page.add(commands, of: hub.current.namespaces.values.filter(\.hasCommands).map(\.name))
    page.add(process)
    return page.text
  }
}

extension MetricsText {
  fileprivate typealias Deliveries = [(namespace: NamespaceName, status: PipelineStatus)]

  fileprivate mutating func addBuild(_ version: String) {
    begin("prism_build_info", .gauge, "1; the label tells the daemon's version.")
    sample(1, ["version": version])
  }

  fileprivate mutating func add(_ ingest: IngestCounters) {
    begin("prism_ingest_connections", .gauge, "Open connections of the ingest socket.")
    sample(ingest.connections)
    begin("prism_ingest_accepted_connections_total", .counter, "Connections that the ingest socket took.")
    sample(ingest.acceptedConnections)
    begin("prism_ingest_refused_connections_total", .counter, "Connections that were answered busy and closed, by why.")
    for cause in IngestCounters.Refusal.allCases {
      sample(ingest.refusedConnections[cause] ?? 0, ["cause": cause.rawValue])
    }
    begin("prism_ingest_closed_connections_total", .counter, "Connections that the daemon closed, by why.")
    for cause in IngestCounters.Closure.allCases {
      sample(ingest.closedConnections[cause] ?? 0, ["cause": cause.rawValue])
    }
    begin("prism_ingest_pauses_total", .counter, "Times that a connection was not read from, by why.")
    sample(ingest.memoryPauses, ["cause": "memory"])
    sample(ingest.answerPauses, ["cause": "answers"])
    begin("prism_ingest_memory_bytes", .gauge, "Requests, reports before their commit and answers in memory.")
    sample(ingest.memoryBytes)
    begin("prism_ingest_memory_limit_bytes", .gauge, "What they may take, ingest.memoryMByte.")
    sample(ingest.memoryBytesMax)
    begin("prism_input_requests_total", .counter, "Requests of other inputs than the ingest socket's own, by answer.")
    let requests = ingest.inputRequests.sorted {
      ($0.key.input, $0.key.status) < ($1.key.input, $1.key.status)
    }
    for (result, count) in requests {
      sample(count, ["input": result.input, "status": String(result.status)])
    }
    begin("prism_ingest_foreign_total", .counter, "Connections that spoke a protocol which is not taken there.")
    for foreign in ForeignProtocol.allCases {
      sample(ingest.foreignProtocols[foreign] ?? 0, ["protocol": foreign.rawValue])
    }
    begin("prism_reports_received_total", .counter, "Reports that came, refused ones included.")
    sample(ingest.tally.received)
    begin("prism_reports_stored_total", .counter, "Reports that were answered stored, duplicates included.")
    sample(ingest.tally.stored)
    begin("prism_reports_repeated_total", .counter, "Reports that came again under a known id, and are stored once.")
    sample(ingest.tally.repeated)
    begin("prism_payloads_left_out_total", .counter, "Payloads that were too large and left out.")
    sample(ingest.tally.leftOutPayloads)
    begin("prism_reports_other_type_total", .counter, "Reports that became the type other, as their own is not taken.")
    sample(ingest.tally.otherTypes)
    begin("prism_reports_refused_total", .counter, "Reports that were refused, by the code that was answered.")
    for code in RefusalCode.allCases { sample(ingest.tally.refused[code] ?? 0, ["code": code.rawValue]) }
  }

  fileprivate mutating func add(_ commits: CommitCounters) {
    begin("prism_commit_duration_seconds", .histogram, "From handing reports to the store to its answer.")
    add(commits.duration)
    begin("prism_commit_rows", .histogram, "Reports of one commit.")
    add(commits.rows)
    begin("prism_commit_failures_total", .counter, "Commits of reports that the store did not make.")
    sample(commits.failures)
  }

  private mutating func add(_ histogram: Histogram, _ labels: Labels = [:]) {
    self.histogram(edges: histogram.edges, counts: histogram.counts, sum: histogram.sum, labels)
  }

  fileprivate mutating func add(_ health: StoreHealth) {
    begin("prism_store_state", .gauge, "1 for the state that the store is in.")
    for state in StoreHealth.State.allCases {
      sample(state == health.state ? 1 : 0, ["state": state.rawValue])
    }
    begin("prism_store_faults_total", .counter, "Uses of the database that failed.")
    sample(health.faults)
    begin("prism_store_set_aside_total", .counter, "Damaged databases that were set aside.")
    sample(health.setAside)
  }

  // MARK: Rows

  fileprivate mutating func add(_ store: StoreFigures?, now: Int64) {
    begin("prism_store_answers", .gauge, "1 where the store answered this scrape; else its figures are missing.")
    sample(store == nil ? 0 : 1)
    guard let store else { return }
    begin("prism_store_bytes", .gauge, "Size of the database and its log.")
    sample(store.bytes)
    let queues = store.queues.sorted { $0.key < $1.key }.flatMap { namespace, kinds in
      RowKind.reports.map { kind in
        (namespace.text, kind.name, kinds[kind] ?? QueueStatus(ledger: Ledger(), bytes: 0, oldestAge: nil))
      }
    }
    begin("prism_rows", .gauge, "Rows in the store, by their state.")
    for (namespace, kind, queue) in queues {
      for state in [Ledger.Account.waiting, .claimed, .dead] {
        sample(queue.ledger[state], ["namespace": namespace, "kind": kind, "state": state.rawValue])
      }
    }
    begin("prism_stored_rows_total", .counter, "Rows that were ever stored, through restarts.")
    for (namespace, kind, queue) in queues {
      sample(queue.ledger.stored, ["namespace": namespace, "kind": kind])
    }
    begin("prism_settled_rows_total", .counter, "Rows that left the store, by how, through restarts.")
    for (namespace, kind, queue) in queues {
      for result in [Ledger.Account.delivered, .expired, .evicted, .cleared, .removed, .corrupt] {
        sample(queue.ledger[result], ["namespace": namespace, "kind": kind, "result": result.rawValue])
      }
    }
    add(store.records, now: now)
    addEnrichments(store)
    begin("prism_sampled_reports_total", .counter, "Reports that sample left out, through restarts.")
    for (namespace, kind, queue) in queues where kind == RowKind.meta.name {
      sample(queue.filtered.sampled, ["namespace": namespace])
    }
    begin("prism_collapsed_reports_total", .counter, "Reports that collapse counted on a row, through restarts.")
    for (namespace, kind, queue) in queues where kind == RowKind.meta.name {
      sample(queue.filtered.collapsed, ["namespace": namespace])
    }
    begin("prism_queue_bytes", .gauge, "Size of the rows in the store.")
    for (namespace, kind, queue) in queues { sample(queue.bytes, ["namespace": namespace, "kind": kind]) }
    begin(
      "prism_oldest_waiting_age_seconds", .gauge,
      "Age of the oldest row that waits or is in flight; 0 without such a row.")
    for (namespace, kind, queue) in queues {
      let age = queue.oldestAge.map { $0 / .seconds(1) } ?? 0
      sample(age, ["namespace": namespace, "kind": kind])
    }
  }

  // MARK: Configuration and network

  fileprivate mutating func add(_ hub: ConfigurationHub) {
    begin("prism_configuration_generation", .gauge, "Of the configuration in force.")
    sample(hub.generation)
    begin("prism_configuration_failed_reloads_total", .counter, "Reloads that were refused.")
    sample(hub.failedReloads)
    begin("prism_configuration_faults", .gauge, "Faults of the last reload, until a good one.")
    sample(hub.faults.count)
  }

  fileprivate mutating func add(_ remote: RemoteFigures) {
    begin("prism_remote_version", .gauge, "Number of the remote configuration in force; 0 without one.")
    sample(Int(remote.number))
    begin("prism_remote_namespaces", .gauge, "Namespaces that remote configuration says something of.")
    sample(remote.namespaces)
    begin("prism_remote_probation", .gauge, "Those whose packets are still to prove it.")
    sample(remote.onProbation)
    begin("prism_remote_refused", .gauge, "1 while what the server said last is refused or was taken back.")
    sample(remote.isRefused ? 1 : 0)
    begin("prism_remote_results_total", .counter, "Questions for remote configuration, by what came of them.")
    for result in RemoteFigures.Result.allCases { sample(remote.results[result] ?? 0, ["result": result.rawValue]) }
    begin("prism_remote_last_success_timestamp_seconds", .gauge, "When an answer was last taken; 0: never.")
    sample(Double(remote.lastAnswerMilliseconds) / 1000)
  }

  fileprivate mutating func add(_ network: NetworkStatus) {
    begin("prism_network_state", .gauge, "1 for what the network counts as.")
    for kind in NetworkStatus.Kind.allCases { sample(kind == network.kind ? 1 : 0, ["state": kind.rawValue]) }
  }

  fileprivate mutating func add(_ keys: [(key: CountedKey, report: KeyReport)], keyBlocksMax: Int) {
    begin("prism_key_blocks", .gauge, "Blocks that the key has encrypted on this device, through restarts.")
    for (key, report) in keys { sample(report.blocks, ["key": key.id]) }
    begin("prism_key_blocks_limit", .gauge, "The most blocks that one key may encrypt.")
    sample(keyBlocksMax)
  }

  // MARK: Delivery

  fileprivate mutating func addStates(_ deliveries: Deliveries) {
    func each(_ body: (inout MetricsText, PipelineStatus, Labels) -> Void) {
      for delivery in deliveries { body(&self, delivery.status, ["namespace": delivery.namespace.text]) }
    }
    begin("prism_circuit_open", .gauge, "1 while the collector is only probed, after failures in a row.")
    each { $0.sample($1.circuitIsOpen ? 1 : 0, $2) }
    begin("prism_namespace_held", .gauge, "1 while only an operator can make delivery go on.")
    each { $0.sample($1.isHeld ? 1 : 0, $2) }
    begin("prism_namespace_retired", .gauge, "1 where rows are kept of a namespace that is configured no more.")
    each { $0.sample($1.isRetired ? 1 : 0, $2) }
    begin("prism_last_success_timestamp_seconds", .gauge, "When a packet was last delivered; 0: not since the start.")
    each { $0.sample(Double($1.lastSuccess ?? 0) / 1000, $2) }
    begin("prism_flow_used_bytes", .gauge, "Sent and received over metered networks in the current window.")
    each { $0.sample($1.flow.usedBytes, $2) }
    begin("prism_flow_allowed_bytes", .gauge, "What a window allows over metered networks.")
    each { $0.sample($1.flow.allowedBytes, $2) }
  }

  fileprivate mutating func addPackets(_ deliveries: Deliveries) {
    func each(_ body: (inout MetricsText, EngineCounters, String, String) -> Void) {
      for delivery in deliveries {
        for kind in RowKind.all {
          body(&self, delivery.status.counters[kind], delivery.namespace.text, kind.name)
        }
      }
    }
    begin("prism_packets_total", .counter, "Attempts to deliver a packet, by what came of them.")
    each { page, counters, namespace, kind in
      for result in EngineCounters.Result.allCases {
        page.sample(
          counters.packets[result] ?? 0, ["namespace": namespace, "kind": kind, "result": result.rawValue])
      }
    }
    begin("prism_retries_total", .counter, "Attempts after a packet's first.")
    each { $0.sample($1.retries, ["namespace": $2, "kind": $3]) }
    begin("prism_raw_bytes_total", .counter, "Reports in packets, before compression.")
    each { $0.sample($1.bytesRaw, ["namespace": $2, "kind": $3]) }
    begin("prism_packed_bytes_total", .counter, "Packets' bodies, compressed and encrypted.")
    each { $0.sample($1.bytesPacked, ["namespace": $2, "kind": $3]) }
    begin("prism_sent_bytes_total", .counter, "Sent to collectors, headers and repetitions included.")
    each { $0.sample($1.bytesSent, ["namespace": $2, "kind": $3]) }
    begin("prism_received_bytes_total", .counter, "Received from collectors, headers included.")
    each { $0.sample($1.bytesReceived, ["namespace": $2, "kind": $3]) }
    begin("prism_post_duration_seconds", .histogram, "Duration of a POST, with any result.")
    each { $0.add($1.postDuration, ["namespace": $2, "kind": $3]) }
  }

  fileprivate mutating func addWindows(_ deliveries: Deliveries) {
    func each(_ body: (inout MetricsText, SendWindow, Labels) -> Void) {
      for delivery in deliveries {
        for kind in RowKind.all {
          body(&self, delivery.status.windows[kind], ["namespace": delivery.namespace.text, "kind": kind.name])
        }
      }
    }
    begin("prism_send_window_packets", .gauge, "Packets that may be on their way at a time.")
    each { $0.sample($1.packets, $2) }
    begin("prism_round_trip_seconds", .gauge, "Round trip of the collector's connections, by TCP; 0 if unknown.")
    each { $0.sample(($1.line.roundTrip ?? .zero) / .seconds(1), $2) }
    begin("prism_least_round_trip_seconds", .gauge, "The round trip without a queue on the line; 0 if unknown.")
    each { $0.sample(($1.line.least ?? .zero) / .seconds(1), $2) }
  }

  // MARK: The process

  fileprivate mutating func add(_ process: ProcessFigures) {
    begin("process_cpu_seconds_total", .counter, "Time on a processor, user and system.")
    sample(process.cpuSeconds)
    begin("process_resident_memory_bytes", .gauge, "Memory that is resident.")
    sample(process.residentBytes)
    begin("process_virtual_memory_bytes", .gauge, "Address space.")
    sample(process.virtualBytes)
    begin("process_open_fds", .gauge, "Open descriptors.")
    sample(process.openDescriptors)
    begin("process_max_fds", .gauge, "The limit of open descriptors.")
    sample(process.descriptorsMax)
    begin("process_threads", .gauge, "Threads.")
    sample(process.threads)
    begin("process_start_time_seconds", .gauge, "When the process began, since 1970.")
    sample(process.startSeconds)
  }
}
