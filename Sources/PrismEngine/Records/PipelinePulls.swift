import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore

/// How a namespace's pipeline asks for the server's changes of records, and logs and counts the outcome.
enum PipelinePulls {
  /// Tables whose changes are asked for, those that others refer to first.
  private static func tables(_ pipeline: isolated NamespacePipeline) -> [RecordTable] {
    let tables = (pipeline.settings.configuration?.tables ?? []).filter(\.direction.isPulled)
    let order = RecordOrder(tables)
    return tables.sorted { (order.rank($1.name), $0.name) < (order.rank($0.name), $1.name) }
  }

  /// nil: no table comes down, or a round is under way.
  static func due(_ pipeline: isolated NamespacePipeline) -> Duration? {
    guard let configuration = pipeline.settings.configuration,
      configuration.tables.contains(where: \.direction.isPulled)
    else { return nil }
    return pipeline.records.pulls.due(interval: configuration.recordInterval)
  }

  /// Asks for all tables, unless a gate is shut: what opens it asks again, and so does the interval.
  static func begin(_ pipeline: isolated NamespacePipeline) {
    pipeline.records.pulls.begin(now: pipeline.now)
    guard pipeline.gates(.records).mayTry, !pipeline.circuit.isOpen, !pipeline.isStopping else {
      return end(pipeline, nil)
    }
    pipeline.begin { await run($0) }
  }

  /// Changes of `both` tables leave once the server's are here.
  static func beginBeforeUpload(_ pipeline: isolated NamespacePipeline) {
    pipeline.records.isUploadDue = true
    if !pipeline.records.pulls.isRunning { begin(pipeline) }
  }

  private static func run(_ pipeline: isolated NamespacePipeline) async {
    await keepTables(pipeline)
    await PipelineStores.mark(pipeline)
    let (tables, skipped) = await tablesToAsk(pipeline)
    var round = PullRound(
      tables.map(\.name), through: await through(pipeline, tables), skipped: await through(pipeline, skipped))
    var (failure, isMet): (PullFailure?, Bool) = (nil, false)
    while failure == nil, !isMet, !pipeline.isStopping, !Task.isCancelled, let (name, othersThrough) = round.next() {
      guard let table = tables.first(where: { $0.name == name }) else { continue }
      let seenBefore = round.seenBefore
      let result = await ask(pipeline, for: table, othersThrough: othersThrough)
      switch result.verdict {
      case .applied(let outcome, let sequence):
        round.applied(outcome, sequence: sequence, to: name, seenBefore: seenBefore)
        applied(pipeline, outcome, to: name)
      case .met(let change):
        await PipelineStores.met(pipeline, change)
        isMet = true
      case .failed(let fault):
        await failed(pipeline, fault, table)
        if fault.reach != .table { failure = fault }
      }
    }
    if await pipeline.parts.store.hasWaiting(pipeline.namespace, .records) {
      pipeline.records.schedule.request(now: pipeline.now)
    }
    end(pipeline, failure)
  }

  private static func end(_ pipeline: isolated NamespacePipeline, _ failure: PullFailure?) {
    let pause = failure.map { failure in
      failure.retryAfter
        ?? Backoff.pause(
          afterFailures: pipeline.records.pulls.failuresInRow + 1, isConfiguration: failure.reach == .configuration,
          random: pipeline.parts.random.next())
    }
    pipeline.records.pulls.end(failed: pause, now: pipeline.now)
    if pipeline.records.isUploadDue {
      pipeline.records.isUploadDue = false
      pipeline.want(.records)
    }
    pipeline.arm()
  }

  /// Without those that wait for an unmetered network, or for the answer to an operation of this device.
  private static func tablesToAsk(
    _ pipeline: isolated NamespacePipeline
  ) async -> (asked: [RecordTable], skipped: [RecordTable]) {
    let wifiOnly = pipeline.gates(.records).isMetered ? pipeline.settings.wifiOnlyTables : []
    let reading = await pipeline.parts.store.records
    var (asked, skipped): ([RecordTable], [RecordTable]) = ([], [])
    for table in tables(pipeline) {
      let waits =
        ReportType(table.name.text).map(wifiOnly.contains) ?? false
        || table.direction == .both && reading.isInFlight(table.name, in: pipeline.namespace)
      if waits { skipped.append(table) } else { asked.append(table) }
    }
    return (asked, skipped)
  }

  private static func through(
    _ pipeline: isolated NamespacePipeline, _ tables: [RecordTable]
  ) async -> [RecordTableName: Int64] {
    let (reading, namespace) = (await pipeline.parts.store.records, pipeline.namespace)
    return Dictionary(
      uniqueKeysWithValues: tables.map { ($0.name, reading.standing(of: $0.name, in: namespace)?.after ?? 0) })
  }

  private static func ask(
    _ pipeline: isolated NamespacePipeline, for table: RecordTable, othersThrough: Int64
  ) async -> PullResult {
    let gates = pipeline.gates(.records)
    let reading = await pipeline.parts.store.records
    let standing = reading.standing(of: table.name, in: pipeline.namespace)
    let result = await pipeline.parts.puller.pull(
      TablePull(
        settings: pipeline.settings, table: table, after: standing?.after,
        lastPacket: try? await pipeline.parts.store.lastAccepted(pipeline.namespace, .records),
        holdsRecords: reading.tables(of: pipeline.namespace).first { $0.name == table.name }?.records ?? 0 > 0,
        settledBefore: reading.settled(table.name, in: pipeline.namespace), othersThrough: othersThrough,
        bytesMax: gates.flowRestBytes ?? .max))
    if gates.isMetered { _ = pipeline.book(result.bytes) }
    pipeline.records.counters.add(result)
    return result
  }

  // MARK: The outcome

  private static func applied(
    _ pipeline: isolated NamespacePipeline, _ outcome: DownOutcome, to table: RecordTableName
  ) {
    for clash in outcome.clashes {
      pipeline.parts.clashes.yield(RecordClashNews(namespace: pipeline.namespace, clash: clash))
    }
    if let first = outcome.clashes.first {
      pipeline.parts.log.info(
        "records were changed here and at the server; one change of each holds",
        [
          "namespace": pipeline.namespace.text, "table": table.text, "records": String(outcome.clashes.count),
          "first": first.id.text, "held": first.keptLocal ? "here" : "server",
        ])
    }
    if outcome.kept > 0 {
      pipeline.parts.log.warning(
        "the server's answer lacks records; they are kept here",
        ["namespace": pipeline.namespace.text, "table": table.text, "records": String(outcome.kept)])
    }
    switch outcome.end {
    case .done:
      pipeline.records.pulledAt[table] = pipeline.now
      clearFault(pipeline, table)
    case .tableFull: fault(pipeline, table, "the table holds as many records as its maxRecord allows: raise it")
    case .unreadable: fault(pipeline, table, "a record of the answer has a key twice, or an id is in it twice")
    case .overtaken: pipeline.records.pulls.hasten(to: pipeline.now)
    case .waits, .inFlight, .outdated: break
    }
  }

  private static func failed(
    _ pipeline: isolated NamespacePipeline, _ failure: PullFailure, _ table: RecordTable
  ) async {
    fault(pipeline, table.name, failure.cause)
    guard failure.asksForAll else { return }
    // If it fails, the next round tries again.
    try? await pipeline.parts.store.forgetSequence(of: table.name, in: pipeline.namespace)
  }

  private static func fault(_ pipeline: isolated NamespacePipeline, _ table: RecordTableName, _ cause: String) {
    pipeline.records.faults[table] = cause
    pipeline.parts.log.fault(
      "records.\(pipeline.namespace).\(table)", "the server's records can't be brought here; tried again",
      ["namespace": pipeline.namespace.text, "table": table.text, "cause": cause])
  }

  private static func clearFault(_ pipeline: isolated NamespacePipeline, _ table: RecordTableName) {
    guard pipeline.records.faults.removeValue(forKey: table) != nil else { return }
    pipeline.parts.log.faultEnded(
      "records.\(pipeline.namespace).\(table)", "the server's records are here again", ["table": table.text])
  }

  /// Tables whose declaration changed, or that are not declared any more.
  static func keepTables(_ pipeline: isolated NamespacePipeline) async {
    guard let tables = pipeline.settings.configuration?.tables else { return }
    let names = Set(tables.map(\.name))
    pipeline.records.pulledAt = pipeline.records.pulledAt.filter { names.contains($0.key) }
    pipeline.records.faults = pipeline.records.faults.filter { names.contains($0.key) }
    do { try await pipeline.parts.store.keepTables(tables, of: pipeline.namespace) } catch {
      pipeline.parts.log.warning(
        "tables of records could not be held to the new configuration", ["cause": error.description])
    }
  }
}
