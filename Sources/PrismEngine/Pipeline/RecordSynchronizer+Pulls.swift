import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore

// Asks for the server's changes of records, and logs and counts the outcome.
extension RecordSynchronizer {
  /// Asks for all tables, unless a gate is shut: what opens it asks again, and so does the interval. It is a probe of its own,
  /// with pauses of its own: a namespace without rows has no other one.
  func beginPull() {
    pulls.begin(now: now)
    guard host.gates(.records).mayTry, host.mayProbe(), !host.isStopping() else { return endPull(nil) }
    host.begin(.pull)
  }

  nonisolated(nonsending) func pull() async {
    await keepTables()
    await mark()
    let (tables, skipped) = await tablesToAsk()
    var round = PullRound(
      tables.map(\.name), through: await through(tables), skipped: await through(skipped))
    var (failure, isMet): (PullFailure?, Bool) = (nil, false)
    while failure == nil, !isMet, !host.isStopping(), !Task.isCancelled, let (name, othersThrough) = round.next() {
      guard let table = tables.first(where: { $0.name == name }) else { continue }
      let seenBefore = round.seenBefore
      switch await ask(for: table, othersThrough: othersThrough).verdict {
      case .applied(let outcome, let sequence):
        host.collectorAnswered()
        round.applied(outcome, sequence: sequence, to: name, seenBefore: seenBefore)
        applied(outcome, to: name)
      case .storeChanged(let change):
        await storeChanged(change)
        isMet = true
      case .failed(let fault):
        await failed(fault, table)
        if fault.reach != .table { failure = fault }
      }
    }
    if await store.hasWaiting(namespace, .records) { schedule.request(now: now) }
    endPull(failure)
  }

  private func endPull(_ failure: PullFailure?) {
    let pause = failure.map { failure in
      failure.retryAfter
        ?? Backoff.pause(
          afterFailures: pulls.failuresInRow + 1, isConfiguration: failure.reach == .configuration,
          random: parts.random.next())
    }
    pulls.end(failed: pause, now: now)
    if isUploadDue {
      isUploadDue = false
      host.want(.records)
    }
    host.arm()
  }

  /// Those that others refer to first; without those that wait for an unmetered network, or for the answer to an operation of
  /// this device.
  private nonisolated(nonsending) func tablesToAsk() async -> (asked: [RecordTable], skipped: [RecordTable]) {
    let (wifiOnly, reading) = (wifiOnly, await store.records)
    let pulled = declared.filter(\.direction.isPulled)
    let order = RecordOrder(pulled)
    let tables = pulled.sorted { (order.rank($1.name), $0.name) < (order.rank($0.name), $1.name) }
    func waits(_ table: RecordTable) -> Bool {
      waitsForWifi(table, wifiOnly) || table.direction == .both && reading.isInFlight(table.name, in: namespace)
    }
    return (tables.filter { !waits($0) }, tables.filter(waits))
  }

  private nonisolated(nonsending) func through(_ tables: [RecordTable]) async -> [RecordTableName: Int64] {
    let reading = await store.records
    return Dictionary(
      uniqueKeysWithValues: tables.map { ($0.name, reading.standing(of: $0.name, in: namespace)?.after ?? 0) })
  }

  private nonisolated(nonsending) func ask(for table: RecordTable, othersThrough: Int64) async -> PullResult {
    let (gates, reading) = (host.gates(.records), await store.records)
    let result = await parts.puller.pull(
      TablePull(
        settings: settings, table: table, after: reading.standing(of: table.name, in: namespace)?.after,
        lastPacket: try? await store.lastAccepted(namespace, .records),
        holdsRecords: reading.tables(of: namespace).first { $0.name == table.name }?.records ?? 0 > 0,
        settledBefore: reading.settled(table.name, in: namespace), othersThrough: othersThrough,
        bytesMax: gates.flowRestBytes ?? .max))
    if gates.isMetered { host.book(result.bytes) }
    status.counters.add(result)
    return result
  }

  // MARK: The outcome

  private func applied(_ outcome: DownOutcome, to table: RecordTableName) {
    for clash in outcome.clashes { parts.clashes.yield(RecordClashNews(namespace: namespace, clash: clash)) }
    if let first = outcome.clashes.first {
      parts.log.info(
        "records were changed here and at the server; one change of each holds",
        [
          "namespace": namespace.text, "table": table.text, "records": String(outcome.clashes.count),
          "first": first.id.text, "held": first.keptLocal ? "here" : "server",
        ])
    }
    if outcome.kept > 0 {
      parts.log.warning(
        "the server's answer lacks records; they are kept here",
        ["namespace": namespace.text, "table": table.text, "records": String(outcome.kept)])
    }
    switch outcome.end {
    case .done:
      pulledAt[table] = now
      guard status.faults.removeValue(forKey: table) != nil else { return }
      parts.log.faultEnded(
        "records.\(namespace).\(table)", "the server's records are here again", ["table": table.text])
    case .tableFull: fault(table, "the table holds as many records as its maxRecord allows: raise it")
    case .unreadable: fault(table, "a record of the answer has a key twice, or an id is in it twice")
    case .overtaken: pulls.hasten(to: now)
    case .waits, .inFlight, .outdated: break
    }
  }

  private nonisolated(nonsending) func failed(_ failure: PullFailure, _ table: RecordTable) async {
    fault(table.name, failure.cause)
    guard failure.asksForAll else { return }
    // If it fails, the next round tries again.
    try? await store.forgetSequence(of: table.name, in: namespace)
  }

  private func fault(_ table: RecordTableName, _ cause: String) {
    status.faults[table] = cause
    parts.log.fault(
      "records.\(namespace).\(table)", "the server's records can't be brought here; tried again",
      ["namespace": namespace.text, "table": table.text, "cause": cause])
  }

  /// Tables whose declaration changed, or that are not declared any more.
  nonisolated(nonsending) func keepTables() async {
    guard let tables = settings.configuration?.tables else { return }
    let names = Set(tables.map(\.name))
    pulledAt = pulledAt.filter { names.contains($0.key) }
    status.faults = status.faults.filter { names.contains($0.key) }
    do { try await store.keepTables(tables, of: namespace) } catch {
      parts.log.warning(
        "tables of records could not be held to the new configuration", ["cause": error.description])
    }
  }
}
