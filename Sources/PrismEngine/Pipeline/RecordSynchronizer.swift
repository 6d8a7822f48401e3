import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore

/// Synchronizes one namespace's records: when this device's changes are sent, when the server's are asked for, and which store
/// of the server answers. Its pipeline owns it, tells it events, and calls it on its own turns only.
final class RecordSynchronizer {
  /// Work that waits for the store or the server.
  enum Work: Sendable {
    case send, pull, lookForWork, keepTables
    case recognize(StoreMark, StoreReceipt)
  }

  /// The longest wait before the records are sent to a store that is another one, so that stores in turn cost little.
  private static let pauseMax: Duration = .seconds(600)

  let host: PipelineHost
  /// When changes of this device are sent.
  var schedule = RecordSchedule()
  /// The last change that a synchronization takes.
  private var bound: Int64 = 0
  /// When the server's changes are asked for.
  var pulls = PullSchedule()
  /// Changes of this device leave after the round of questions that is under way.
  var isUploadDue = false
  /// When each table's changes were last all here, on the uptime clock: changes of a `both` table leave after that.
  var pulledAt: [RecordTableName: Duration] = [:]
  /// Questions since the start, and why a table could not be brought up to date; each cause is logged once.
  var status = PullStatus()
  private var receipt: StoreReceipt?
  /// Stores that answered since the start, the first one not counted.
  private var meetings = 0

  init(_ host: PipelineHost) { self.host = host }

  var parts: PipelineParts { host.parts }
  var store: ReportStore { host.parts.store }
  var now: Duration { host.parts.time.uptime }
  var settings: PipelineSettings { host.settings() }
  var namespace: NamespaceName { host.settings().namespace }
  var declared: [RecordTable] { host.settings().configuration?.tables ?? [] }

  // MARK: Events

  /// A change was committed.
  func changed() { schedule.request(now: now) }

  /// Changes are left from the last run.
  func hasten() { schedule.hasten(to: now) }

  func flush() {
    schedule.hasten(to: now)
    pulls.retry(at: now)
  }

  func networkChanged(tryAt: Duration) {
    if schedule.isRequested { schedule.hasten(to: tryAt) }
    pulls.retry(at: tryAt)
  }

  func settingsChanged() {
    drained()
    pulls.retry(at: now)
    host.begin(.keepTables)
  }

  func reloaded() { if pulls.failuresInRow > 0 { pulls.retry(at: now) } }

  /// The collector answers again.
  func circuitClosed() { pulls.hasten(to: now) }

  func gateOpened() { if schedule.isRequested { schedule.hasten(to: now) } }

  /// An answer to an upload named the newest operation.
  func announced(_ sequence: Int64) { if pulls.announce(sequence, now: now) { host.arm() } }

  /// The answer to a command does not wait for the interval. Those that follow soon go with it.
  func commandAnswered() {
    schedule.hasten(to: now + RecordSchedule.mergeWindow)
    host.arm()
  }

  /// Changes that were left, or came since, are for the next synchronization.
  func drained() { host.begin(.lookForWork) }

  // MARK: What is due

  /// nil: nothing is requested, and no table comes down.
  var due: Duration? { [sendDue, pullDue].compactMap(\.self).min() }

  private var sendDue: Duration? {
    guard let configuration = settings.configuration, !configuration.tables.isEmpty else { return nil }
    return schedule.due(interval: configuration.recordInterval)
  }

  /// nil also while a round is under way.
  private var pullDue: Duration? {
    guard declared.contains(where: \.direction.isPulled) else { return nil }
    let interval = settings.configuration?.recordInterval ?? .zero
    guard let asked = settings.configuration?.askInterval, asked < interval, !host.gates(.records).isMetered else {
      return pulls.due(interval: interval)
    }
    return pulls.due(interval: asked)
  }

  /// Begins what is due. Changes that are made from now on wait for the next synchronization, so that one that lasts does not
  /// follow them.
  func tick() {
    if let due = sendDue, due <= now {
      schedule.begin(now: now)
      host.begin(.send)
    }
    if let due = pullDue, due <= now { beginPull() }
  }

  /// No synchronization is under way, or asked for without waiting for the interval.
  var isQuiet: Bool {
    !schedule.isBeginning && !pulls.isRunning && (!schedule.isHastened || sendDue == nil)
  }

  /// The first gate that keeps changes of a table from leaving; nil: they are on their way.
  func explain(_ table: RecordTableName) -> ShutGate? { host.gates(.records).shutGate(for: table, due: sendDue) }

  nonisolated(nonsending) func perform(_ work: Work) async {
    switch work {
    case .send: await send()
    case .pull: await pull()
    case .lookForWork:
      if await store.records.hasWork(namespace) { schedule.request(now: now) }
      host.arm()
    case .keepTables: await keepTables()
    case .recognize(let mark, let receipt): await recognize(mark, receipt)
    }
  }

  // MARK: Sending

  private nonisolated(nonsending) func send() async {
    await mark()
    let reading = await store.records
    bound = reading.bound
    if declared.contains(where: { $0.direction == .both && reading.isWaiting($0.name, in: namespace) }) {
      // Changes of `both` tables leave once the server's are here.
      isUploadDue = true
      if !pulls.isRunning { beginPull() }
    } else {
      host.want(.records)
    }
    schedule.didBegin()
  }

  /// The changes that a packet may take now. Those of a `both` table leave only soon after the server's changes came.
  var claim: RecordClaim {
    let (wifiOnly, interval) = (wifiOnly, settings.configuration?.recordInterval ?? .zero)
    let tables = declared.filter { table in
      let isPulled = pulledAt[table.name].map { now - $0 <= interval } ?? false
      return !waitsForWifi(table, wifiOnly) && (table.direction != .both || isPulled)
    }
    return RecordClaim(tables: tables, bound: bound)
  }

  var wifiOnly: TypeSet { host.gates(.records).isMetered ? settings.wifiOnlyTables : [] }

  func waitsForWifi(_ table: RecordTable, _ wifiOnly: TypeSet) -> Bool {
    ReportType(table.name.text).map(wifiOnly.contains) ?? false
  }

  // MARK: The server's stores

  /// A receipt named its store.
  func accepted(_ new: StoreReceipt) {
    guard let mark = new.store, new != receipt else { return }
    receipt = StoreReceipt(store: mark, isChainBroken: false)
    host.begin(.recognize(mark, new))
  }

  private nonisolated(nonsending) func recognize(_ mark: StoreMark, _ new: StoreReceipt) async {
    do {
      let change = try await store.recognize(mark, knowsLess: new.isChainBroken, in: namespace)
      if change != .same { await storeChanged(change) }
    } catch { receipt = nil }  // the next receipt tells it again
  }

  /// The store has noted it: another one, or one that knows less, gets all records again. From now on nothing is believed of
  /// what was asked before.
  nonisolated(nonsending) func storeChanged(_ change: KnownStore.Change) async {
    pulledAt = [:]
    let known = await store.records.store(of: namespace)
    parts.log.warning(
      change.message,
      [
        "namespace": namespace.text, "store": known?.latest.description ?? "",
        "trusted": known?.trusted.description ?? "",
      ])
    let tryAt = now + min(Self.pauseMax, .seconds((1 << min(meetings, 10)) - 1))
    meetings += 1
    pulls.hasten(to: tryAt)
    schedule.hasten(to: tryAt)
    host.arm()
  }

  /// Marks the records that are to be sent again, slice by slice.
  nonisolated(nonsending) func mark() async {
    guard await store.records.store(of: namespace)?.isMarking == true else { return }
    do {
      while try await store.markRecords(declared, of: namespace), !host.isStopping() {}
      schedule.request(now: now)
    } catch {
      parts.log.fault(
        "records.store.\(namespace)", "records can't be marked to be sent again; tried again",
        ["namespace": namespace.text, "cause": error.description])
    }
  }

  /// An operator says that the store which answered last is the server's.
  nonisolated(nonsending) func acceptStore(_ expected: StoreMark?) async throws(StoreError) -> KnownStore.Acceptance {
    let acceptance = try await store.acceptStore(expected, of: namespace)
    pulls.retry(at: now)
    host.arm()
    return acceptance
  }
}

extension KnownStore.Change {
  fileprivate var message: String {
    switch self {
    case .same: "the server's store is the same"
    case .other:
      "another store answers for the server: its deletions are not taken until `prismctl accept-store`, and all records of "
        + "this device are sent to it"
    case .back: "the server's known store answers again: all records of this device are sent to it"
    case .knowsLess: "the server's store knows less than before: all records of this device are sent to it again"
    }
  }
}
