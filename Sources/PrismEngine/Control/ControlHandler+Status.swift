import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol
import PrismStore

extension ControlHandler {
  func status() async -> StatusReport {
    let (parts, process) = (engine.parts, process())
    var report = StatusReport()
    (report.version, report.remote) = (version, await remote?.status)
    report.uptimeSeconds = Int((parts.time.uptime - engine.startedAt).components.seconds)
    (report.generation, report.configFaults) = (engine.hub.generation, engine.hub.faults)
    // The others are said by the database, by the keys and by what was refused.
    report.faults = parts.log.errors(but: ["store", "key.", "datagrams."])
    report.network = network(hasReason: false)
    (report.memory.residentBytes, report.memory.virtualBytes) = (process.residentBytes, process.virtualBytes)
    let counts = await counts()
    (report.repeated, report.storeBytes) = (counts.repeated, await parts.store.storeBytes())
    report.store = StoreReport(engine.storeHealth, uptime: parts.time.uptime)
    let refused = counts.refused.filter { $0.value > 0 }.sorted { $0.key < $1.key }
    report.refused = NamedValues(refused.map { .init($0.key, $0.value) })
    report.keys = NamedValues(engine.keyReports.map { .init($0.key.id, $0.report) })
    report.namespaces = await namespaces()
    let waiting = Dictionary(uniqueKeysWithValues: report.namespaces.map { ($0.name, $0.value.unsentRows) })
    report.nextStep = NextStep.text(await configuration.inForce()) { waiting[$0.text] ?? 0 }
    return report
  }

  func network(hasReason: Bool) -> NetworkReport {
    let state = engine.parts.network.current
    var report = NetworkReport()
    (report.kind, report.interface) = (state.kind.rawValue, state.interface)
    report.reason = hasReason ? state.reason : nil
    return report
  }

  private func namespaces() async -> NamedValues<NamespaceReport> {
    let queues = await engine.parts.store.lastKnownStatus()
    let (records, triggers) = await (engine.parts.store.records, engine.parts.store.triggers)
    let now = engine.parts.time.unixMilliseconds
    var reports: [NamedValues<NamespaceReport>.Element] = []
    for (namespace, pipeline) in await engine.pipelines.sorted(by: { $0.key < $1.key }) {
      let status = await pipeline.status
      var report = NamespaceReport(status, engine.hub.current.namespaces[namespace])
      if let metas = queues[namespace]?[.meta], case let sums = metas.filtered {
        (report.sampled, report.collapsed, report.forgottenIDs) = (sums.sampled, sums.collapsed, sums.forgottenIDs)
        (report.forgottenGroups, report.lastExpiry) = (sums.forgottenGroups, metas.expiry.map { ExpiryReport($0) })
      }
      for kind in RowKind.reports {
        report[kind] = QueueReport(queues[namespace]?[kind], status.counters[kind])
      }
      report.triggers = TriggerReport.all(
        triggers[namespace] ?? [:], declared: engine.hub.current.namespaces[namespace]?.triggers ?? [])
      if engine.hub.current.namespaces[namespace]?.countsHealth == true {
        let note = try? await engine.parts.store.note(namespace, AppHealth.noteKey)
        report.sessions = SessionReport(AppHealth((note ?? nil).flatMap { try? JSONValue(parsing: $0) } ?? .null))
      }
      let known = records.store(of: namespace)
      report.store = known.map { RecordStoreReport($0) }
      report.records = RecordTableReport.all(
        records.tables(of: namespace), declared: engine.hub.current.namespaces[namespace]?.tables ?? [],
        faults: status.pulls.faults, kept: known?.kept ?? [:], now: now)
      reports.append(.init(namespace.text, report))
    }
    return NamedValues(reports)
  }
}

extension NamespaceReport {
  /// - Parameter configuration: nil for a retired one.
  fileprivate init(_ status: PipelineStatus, _ configuration: NamespaceConfiguration?) {
    self.init()
    (isPlain, isFileGone) = (configuration?.isPlain ?? false, configuration?.isFileGone ?? false)
    state = status.isRetired ? "retired" : status.isHeld ? "held" : "active"
    circuit = status.circuitIsOpen ? "open" : "closed"
    lastSuccess = status.lastSuccess.map { RFC3339.text(unixMilliseconds: $0) }
    lastFailure = status.lastFailure.map { FailureReport($0) }
    nextTryInSeconds = status.nextTryIn.map { Int($0.secondsRoundedUp) }
    flow = status.flow
  }
}

extension TriggerReport {
  /// Those that are declared, and those that did something.
  fileprivate static func all(
    _ states: [String: TriggerState], declared: [ReportTrigger]
  ) -> NamedValues<TriggerReport> {
    let names = declared.map(\.name) + states.keys.filter { name in !declared.contains { $0.name == name } }.sorted()
    return NamedValues(
      names.map { name in
        let state = states[name] ?? TriggerState()
        var report = TriggerReport()
        (report.fired, report.rows) = (state.fired, state.rows)
        (report.overBudget, report.tooSoon, report.declined) = (state.overBudget, state.tooSoon, state.declined)
        return .init(name, report)
      })
  }
}

extension RecordStoreReport {
  fileprivate init(_ known: KnownStore) {
    self.init()
    (id, trusted) = (known.latest.description, known.isTrusted ? nil : known.trusted.description)
  }
}

extension RecordTableReport {
  fileprivate static func all(
    _ tables: [RecordTableStatus], declared: [RecordTable], faults: [RecordTableName: String],
    kept: [RecordTableName: Int], now: Int64
  ) -> NamedValues<RecordTableReport> {
    NamedValues(
      tables.map { table in
        var report = RecordTableReport(table, fault: faults[table.name], now: now)
        report.kept = kept[table.name] ?? 0
        report.isDeclared = declared.contains { $0.name == table.name }
        return .init(table.name.text, report)
      })
  }

  fileprivate init(_ table: RecordTableStatus, fault: String?, now: Int64) {
    self.init()
    (ageSeconds, self.fault) = (table.down?.heldTime.map { Int(max(0, now - $0) / 1000) }, fault)
    (keptLocal, keptRemote) = (table.down?.keptLocal ?? 0, table.down?.keptRemote ?? 0)
    (records, put, confirmed) = (table.records, table.ledger.stored, table.ledger[.delivered])
    (merged, waiting, inFlight) = (table.ledger[.removed], table.ledger[.waiting], table.ledger[.claimed])
    (refused, corrupt) = (table.ledger[.dead], table.ledger[.corrupt])
  }
}

extension QueueReport {
  /// - Parameter queue: nil: nothing was ever stored.
  fileprivate init(_ queue: QueueStatus?, _ counters: EngineCounters) {
    self.init()
    let queue = queue ?? QueueStatus(ledger: Ledger(), bytes: 0, oldestAge: nil)
    (waiting, claimed, dead) = (queue.ledger[.waiting], queue.ledger[.claimed], queue.ledger[.dead])
    (bytes, keptBytes, setBack, ledger) = (queue.bytes, queue.keptBytes, queue.setBack, queue.ledger)
    (memoryRows, memoryBytes, memoryLost) = (queue.inMemory.rows, queue.inMemory.bytes, queue.inMemory.lost)
    oldestAgeSeconds = Int(queue.oldestAge?.components.seconds ?? 0)
    packets = NamedValues(EngineCounters.Result.allCases.map { .init($0.rawValue, counters.packets[$0] ?? 0) })
    (bytesRaw, bytesSent) = (counters.bytesRaw, counters.bytesSent)
  }
}

extension ExpiryReport {
  fileprivate init(_ expiry: Expiry) {
    self.init()
    (time, rows, heldHours) = (RFC3339.text(unixMilliseconds: expiry.unixMilliseconds), expiry.rows, expiry.heldHours)
  }
}

extension FailureReport {
  init(_ failure: RetryRecord.Failure) {
    self.init()
    time = RFC3339.text(unixMilliseconds: failure.unixMilliseconds)
    (status, code, cause) = (failure.status, failure.code?.rawValue, failure.cause)
  }
}

extension StoreReport {
  fileprivate init(_ health: StoreHealth, uptime: Duration) {
    self.init()
    isNews = health.newsEnd.map { uptime < $0 } ?? false
    (state, since) = (health.state.rawValue, RFC3339.text(unixMilliseconds: health.since))
    (takesReports, cause, faults) = (health.takesReports, health.cause, health.faults)
    (setAside, salvagedRows, lostRows) = (health.setAside, health.salvagedRows, health.lostRows)
    leftBehind = health.leftBehind
    awaited = NamedValues(
      health.awaited.sorted { $0.key < $1.key }.map { namespace, kinds in
        .init(
          namespace.text,
          NamedValues(RowKind.reports.compactMap { kind in kinds[kind].map { .init(kind.name, $0) } }))
      })
  }
}
