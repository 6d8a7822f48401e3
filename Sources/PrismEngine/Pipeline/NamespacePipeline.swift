import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore

/// Delivers one namespace's reports: its timer, deliveries and budget are its own, so a dead collector costs the others
/// nothing. Values decide (`UploadSchedule`, `Gates`, `Delivery`); this actor does what they say
/// (`NamespacePipeline+Actions`).
actor NamespacePipeline {
  let parts: PipelineParts
  let signal: UploadSignal
  var settings: PipelineSettings

  var schedule = UploadSchedule()
  var deliveries = PerKind(each: Delivery.init)
  var circuit = Circuit()
  var flow: FlowWindow
  var isStopping = false
  var proof = SettingsProof()
  var dictionary = DictionaryState()
  /// To be written with the next commit.
  var notes: [String: [UInt8]?] = [:]

  /// When a gate that was found shut opens by time alone (the metered window's end).
  private var gateOpensAt: Duration?
  private var timer: (at: Duration, task: Task<Void, Never>)?
  /// Requests of the deliveries that are not answered yet.
  private var tasks = RunningTasks()
  /// Made with their first use, because they refer to this actor.
  private var children: (records: RecordSynchronizer, carryJob: CarryJob, intents: IntentHandler)?

  init(parts: PipelineParts, settings: PipelineSettings, signal: UploadSignal) {
    (self.parts, self.settings, self.signal) = (parts, settings, signal)
    flow = FlowWindow(now: Instant(parts.time))
  }

  var records: RecordSynchronizer { madeChildren.records }
  var carryJob: CarryJob { madeChildren.carryJob }
  var intents: IntentHandler { madeChildren.intents }

  private var madeChildren: (records: RecordSynchronizer, carryJob: CarryJob, intents: IntentHandler) {
    if let children { return children }
    let host = PipelineHost(
      parts: parts, settings: { [unowned self] in settings }, gates: { [unowned self] in gates($0) },
      delivery: { [unowned self] in deliveries[$0] }, isStopping: { [unowned self] in isStopping },
      mayProbe: { [unowned self] in circuit.allows(.records) },
      collectorAnswered: { [unowned self] in closeCircuit() }, book: { [unowned self] in _ = book($0) },
      tell: { [unowned self] in tell($0, $1) }, want: { [unowned self] in want($0) },
      requestRows: { [unowned self] in requestUpload(.rows) }, arm: { [unowned self] in arm() },
      begin: { [unowned self] work in begin { await $0.synchronize(work) } },
      askIntents: { [unowned self] in begin { await $0.askIntents() } })
    let made = (records: RecordSynchronizer(host), carryJob: CarryJob(host), intents: IntentHandler(host))
    children = made
    return made
  }

  var namespace: NamespaceName { settings.namespace }
  var now: Duration { parts.time.uptime }

  /// Returns when the pipeline has turned: for a watchdog.
  func turns() {}

  /// Takes up what the last run left; its reports are sent first.
  func start(with remains: NamespaceRemains) {
    let instant = Instant(parts.time)
    if let window = remains.notes[FlowWindow.noteKey].flatMap({ FlowWindow(note: $0, now: instant) }) { flow = window }
    for kind in RowKind.all {
      guard let note = remains.notes[RetryRecord.noteKey(kind)] else { continue }
      tell(kind, .restored(RetryRecord(note: note, now: instant)))
    }
    followCollector()
    for kind in RowKind.all {
      let record = deliveries[kind].retry
      guard record.lastFailure?.isMissingRoute(of: kind) != true else { continue }
      circuit = Circuit(failuresInRow: max(circuit.failuresInRow, record.failuresInRow))
    }
    if let note = remains.notes[Self.dictionaryKey] { dictionary = DictionaryState(note: note) }
    if remains.hasReports { requestUpload(.start) }
    if remains.hasRecords { records.hasten() }
    arm()
  }

  var interval: Duration { settings.configuration?.uploadInterval ?? .seconds(5) }

  // MARK: Requests

  /// Rows were committed, as `signal` tells.
  func wake() {
    let fresh = signal.takeFresh()
    if fresh.contains(.released) { intents.mayWait = true }
    if fresh.contains(.crash) { requestUpload(.crash) } else if fresh.contains(.realtime) { requestUpload(.realtime) }
    if fresh.hasRows { requestUpload(.rows) }
    if fresh.contains(.rows(.records)) { records.changed() }
    arm()
  }

  func flush() async {
    await endSetBacks()
    try? await parts.store.endWindows(of: namespace)  // a store that fails says so itself
    requestUpload(.flush)
    records.flush()
    trigger(.flush, tryAt: now)
  }

  /// Reports that were set back may leave again.
  func endSetBacks() async {
    noteSetBacksEnd()
    await parts.store.endSetBacks(of: namespace)
  }

  /// Before the store does it, so that the timer waits for it no more.
  func noteSetBacksEnd() { for kind in RowKind.reports { tell(kind, .setBacksEnded) } }

  /// Rows wait without an append.
  func reportsCameBack() {
    requestUpload(.rows)
    arm()
  }

  func networkChanged() {
    guard parts.network.current.kind != .none else { return }
    requestUpload(.network)
    let tryAt = now + UploadSchedule.networkJitter.share(parts.random.next())
    records.networkChanged(tryAt: tryAt)
    trigger(.network, tryAt: tryAt)
  }

  /// A reload changed what this namespace works with.
  func apply(_ settings: PipelineSettings) {
    self.settings = settings
    proof.changed()
    followCollector()
    requestUpload(.start)
    records.settingsChanged()
    trigger(.reload, tryAt: now)
  }

  private func followCollector() {
    guard let collector = settings.collector else { return }
    for kind in RowKind.all { tell(kind, .collector(collector)) }
  }

  func reloaded() {
    records.reloaded()
    trigger(.reread, tryAt: now)
  }

  func requestUpload(_ request: UploadSchedule.UploadRequest) {
    schedule.requestUpload(request, now: now, interval: interval, random: parts.random.next())
  }

  private func trigger(_ trigger: UploadState.RetryTrigger, tryAt: Duration) {
    intents.retry(at: tryAt)
    for kind in RowKind.all { tell(kind, .upload(.trigger(trigger, tryAt: tryAt))) }
    arm()
  }

  // MARK: The timer

  /// On metered networks uploads are merged.
  var spacing: Duration? {
    let isMetered = parts.network.current.kind == .metered && settings.collector?.isLoopback != true
    return isMetered ? settings.configuration?.meteredInterval : nil
  }

  private var setBacksEndAt: Duration? { RowKind.reports.compactMap { deliveries[$0].setBacksEndAt }.min() }

  /// When something is to be done next; nil if no upload is requested.
  var due: Duration? {
    let pauses = RowKind.all.compactMap { kind -> Duration? in
      if case .paused(let pause) = deliveries[kind].upload { pause.until } else { nil }
    }
    let others = [schedule.due(spacing: spacing), records.due, gateOpensAt, intents.tryAt, setBacksEndAt]
    return (pauses + others.compactMap(\.self)).min()
  }

  /// One sleeping task, to the next thing that is due.
  func arm() {
    guard !isStopping, let due, due != timer?.at else { return }
    timer?.task.cancel()
    let time = parts.time
    let task = Task { [weak self] in
      do { try await time.sleep(until: due) } catch { return }  // cancelled: another one is armed
      await self?.tick()
    }
    timer = (due, task)
  }

  private func tick() {
    timer = nil
    if let opensAt = gateOpensAt, opensAt <= now {
      gateOpensAt = nil
      records.gateOpened()
      schedule.requestUpload(.start, now: now, interval: interval, random: 0)
    }
    if let due = schedule.due(spacing: spacing), due <= now {
      schedule.begin(now: now)
      signal.willUpload()
      for kind in RowKind.reports { want(kind) }
      intents.ask()
    }
    intents.tick()
    records.tick()
    if let setBacksEndAt, setBacksEndAt <= now { perform(.endSetBacks, .meta) }
    for kind in RowKind.all {
      if case .paused(let pause) = deliveries[kind].upload, pause.until <= now { want(kind) }
    }
    arm()
  }

  func want(_ kind: RowKind) {
    if !isStopping { tell(kind, .upload(.wanted)) }
  }

  /// Runs `work`, which a stop waits for and cancels at its deadline.
  func begin(_ work: @escaping Work) {
    tasks.add { number in Task { [weak self] in await self?.run(number, work) } }
  }

  typealias Work = nonisolated(nonsending) @Sendable (NamespacePipeline) async -> Void

  private func run(_ number: Int, _ work: Work) async {
    await work(self)
    tasks.remove(number)
  }

  /// Requests that came while the drain ran counted as part of it. Rows that it didn't see, or left because of a gate
  /// that opened since, must still be sent.
  func drained(_ kind: RowKind) {
    parts.builder.spare.drop()
    if !kind.isReport { records.drained() }
    let mayWait = signal.hasRows(kind) || !deliveries[kind].queue.isDone
    switch gates(kind).verdict {
    case .open: if mayWait && kind.isReport { requestUpload(.rows) }
    case .shut(let gate):
      // Other events that open a gate (a reload, the network) are requests of their own.
      if gate.gate == .flow, let opensIn = gate.opensIn { gateOpensAt = now + opensIn }
      // The other kind's probe may fail for ever by a fault of its own packet.
      if gate.gate == .circuit && mayWait && kind.isReport { requestUpload(.rows) }
    }
    arm()
  }

  // MARK: Stopping and status

  /// No new packet; one that is on its way may take until `deadline` on the uptime clock.
  func stop(deadline: Duration) async {
    isStopping = true
    timer?.task.cancel()
    for kind in RowKind.all { tell(kind, .upload(.stop)) }
    let time = parts.time
    let deadlineTask = Task { [weak self] in
      do { try await time.sleep(until: deadline) } catch { return }  // all ended before
      await self?.tasks.cancel()
    }
    // A task may be the last but one: what it brings may have to be committed.
    while let first = tasks.first { await first.value }
    deadlineTask.cancel()
  }

  /// Nothing is on its way, and no upload is requested.
  var isQuiet: Bool {
    RowKind.all.allSatisfy { deliveries[$0].upload == .idle } && schedule.due(spacing: spacing) == nil
      && records.isQuiet && intents.isQuiet
  }

  /// An attempt is under way, or begins at once: what the last one met says nothing of it.
  var isTrying: Bool {
    RowKind.all.contains { kind in
      switch deliveries[kind].upload {
      case .draining: true
      case .paused(let pause): pause.until <= now && gates(kind).mayTry
      case .idle, .stopped: false
      }
    }
  }

  func gates(_ kind: RowKind, isProbe: Bool = false) -> Gates {
    var pause: UploadState.Pause?
    if case .paused(let current) = deliveries[kind].upload { pause = current }
    var flow = flow
    flow.neededBytes = deliveries[kind].queue.awaitedFlowBytes ?? 0
    return Gates(
      settings: settings, kind: kind, network: parts.network.current, flow: flow, pause: pause,
      lastFailure: deliveries[kind].retry.lastFailure, circuit: circuit, isStopping: isStopping,
      awaited: parts.store.health.awaited[namespace]?[kind], now: Instant(parts.time),
      isCarrying: carryJob.carrier(kind) != nil,
      usedUpKeyBlocks: usedUpKeyBlocks)
  }

  var hasUsedUpKey: Bool { settings.countedKey.map { parts.keys.isUsedUp($0.fingerprint) } ?? false }
  private var usedUpKeyBlocks: Int? { hasUsedUpKey ? parts.keys.blocksMax : nil }
  var status: PipelineStatus {
    PipelineStatus(
      settings, deliveries, flow, provenURL: proof.url, due: due, isCircuitOpen: circuit.isOpen,
      usedUpKeyBlocks: usedUpKeyBlocks, records.status, Instant(parts.time))
  }

  /// The first gate that keeps rows of `type` from leaving; nil: they are on their way.
  func explain(_ kind: RowKind, _ type: ReportType) -> ShutGate? {
    let unspaced = schedule.due(spacing: nil)
    return gates(kind).shutGate(
      for: type, due: schedule.due(spacing: spacing), isSpaced: unspaced != schedule.due(spacing: spacing))
  }

  private func synchronize(_ work: RecordSynchronizer.Work) async { await records.perform(work) }
  private func askIntents() async { await intents.perform() }

  /// For those who look at a child from elsewhere, or tell it something.
  func synchronizing<Result: Sendable>(_ body: @Sendable (RecordSynchronizer) -> Result) -> Result { body(records) }
  func carrying<Result: Sendable>(_ body: @Sendable (CarryJob) -> Result) -> Result { body(carryJob) }

  /// An operator says that the store which answered last is the server's. - Returns: whether that is news.
  func acceptStore(_ expected: StoreMark? = nil) async throws(StoreError) -> KnownStore.Acceptance {
    try await records.acceptStore(expected)
  }
}

/// Tasks that a stop waits for. An ended one is removed at once: it keeps 12 KiB of stack.
struct RunningTasks {
  private var tasks: [Int: Task<Void, Never>] = [:]
  private var last = 0

  /// The one that began first.
  var first: Task<Void, Never>? { tasks.keys.min().flatMap { tasks[$0] } }

  /// - Parameter begin: begins a task, which has to be removed by this number at its end.
  mutating func add(_ begin: (Int) -> Task<Void, Never>) {
    last += 1
    tasks[last] = begin(last)
  }

  mutating func remove(_ number: Int) { tasks[number] = nil }

  func cancel() { for number in tasks.keys.sorted() { tasks[number]?.cancel() } }
}
