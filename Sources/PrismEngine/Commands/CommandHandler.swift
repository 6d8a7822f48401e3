import PrismBase
import PrismConfig
public import PrismProtocol
import PrismStore

/// Carries out the server's commands (docs/records.md, "Commands"): one at a time in each namespace, and four at a time in all.
///
/// A command is written down as `running`, and its id is remembered, before it begins. So it begins at most once: a command that
/// was running when the daemon died ends as failed. No command begins before the server answered once since the start: until
/// then it is not known what time it is, nor whether the server took the command back.
public actor CommandHandler {
  /// Commands of one namespace that may wait for their turn.
  static let waitingMax = 64
  /// Commands of one namespace that are remembered, as the server's clock may go back; with more, expired ones are forgotten.
  static let marksMax = 1000
  /// Commands of all namespaces that are carried out at a time.
  private static let runningMax = 4
  /// The pause after a failure of the store.
  private static let retryPause: Duration = .seconds(10)

  let engine: Engine
  private let tools: any CommandTools
  private var tasks: [NamespaceName: Task<Void, Never>] = [:]
  private var due: Set<NamespaceName> = []
  /// The records whose commands are carried out, or wait for a place.
  private var running: [NamespaceName: (record: RecordID, task: Task<Void, Never>)] = [:]
  private var places = runningMax
  private var waiters: [CheckedContinuation<Void, Never>] = []
  private var isServing = false
  /// The ends of commands since the start.
  public private(set) var counts = CommandCounts()

  /// Nothing is carried out before `start`.
  public init(engine: Engine, tools: any CommandTools) { (self.engine, self.tools) = (engine, tools) }

  /// Takes up what the last run left, and carries out commands from now on.
  public func start() {
    isServing = true
    engine.parts.puller.clocks.observe { [weak self] namespace in Task { await self?.look(namespace) } }
    lookAtAll()
  }

  /// Begins no more commands. One that is carried out ends as `interrupted` at the next start, unless it ends at once.
  public func stop() async {
    isServing = false
    for task in tasks.values { task.cancel() }
    for command in running.values { command.task.cancel() }
    for waiter in waiters { waiter.resume() }
    waiters = []
  }

  /// Looks at tables that changed. Returns at once.
  public nonisolated func changed(_ changes: [RecordTableChange]) {
    for change in changes where change.table == .command {
      Task { [weak self] in await self?.look(change.namespace) }
    }
  }

  /// Looks at the commands of all namespaces: the configuration changed.
  public func lookAtAll() {
    for namespace in engine.hub.current.namespaces.values where namespace.hasCommands { look(namespace.name) }
  }

  func look(_ namespace: NamespaceName) {
    guard isServing else { return }
    due.insert(namespace)
    guard tasks[namespace] == nil else { return }
    tasks[namespace] = Task { await work(namespace) }
  }

  private func work(_ namespace: NamespaceName) async {
    while isServing, due.remove(namespace) != nil {
      do throws(StoreError) {
        try await pass(namespace)
        engine.parts.log.faultEnded("commands.\(namespace)", "commands can be written down again")
      } catch {
        noteFault(Self.notBegun, error, namespace)
        due.insert(namespace)
        do { try await engine.parts.time.sleep(for: Self.retryPause) } catch { break }  // stopped
      }
    }
    tasks[namespace] = nil
  }

  // MARK: One look at a table

  private struct Waiting {
    var record: StoredRecord
    var order: CommandJudge.Order
  }

  private func pass(_ namespace: NamespaceName) async throws(StoreError) {
    guard engine.hub.current.namespaces[namespace]?.hasCommands == true else { return }
    let store = engine.parts.store
    let records = try await records(of: namespace).filter { $0.id != running[namespace]?.record }
    // The last run's commands are over at any time, however their records were changed since.
    let (over, others) = (records.filter(\.isRunning), records.filter { !$0.isRunning })
    for record in over { try await end(answer(.failed, "interrupted"), "interrupted", record, namespace) }
    guard let judge = judge(namespace) else { return }
    let (marks, forgottenThrough) = try await store.commandMarks(of: namespace)
    let forgotten = marks.count < Self.marksMax ? [:] : marks.filter { $0.value.expires <= judge.proven.lowerBound }
    if !forgotten.isEmpty { try await store.forget(forgotten, of: namespace) }
    var (waiting, remembered): ([Waiting], Int) = ([], marks.count - forgotten.count)
    for record in others {
      let mark = marks[record.commandID]
      switch judge.verdict(on: record, mark: mark, forgottenThrough: forgottenThrough) {
      case .waits(let order) where CommandAnswer(record)?.state == .accepted && mark != nil:
        waiting.append(Waiting(record: record, order: order))
      case .waits(let order):
        guard waiting.count < Self.waitingMax, mark != nil || remembered < Self.marksMax else {
          try await end(.refused(.tooMany), record, namespace)
          continue
        }
        guard let accepted = try await accept(record, order, namespace) else { continue }
        waiting.append(Waiting(record: accepted, order: order))
        if mark == nil { remembered += 1 }
      case let verdict: try await end(verdict, record, namespace)
      }
    }
    // The oldest one begins. Its end is looked at next.
    guard running[namespace] == nil,
      let next = waiting.min(by: { ($0.record.changedTime, $0.record.id) < ($1.record.changedTime, $1.record.id) })
    else { return }
    running[namespace] = (next.record.id, Task { await begin(next.record, namespace) })
  }

  private func begin(_ record: StoredRecord, _ namespace: NamespaceName) async {
    do throws(StoreError) { try await carryOut(record, namespace) } catch {
      noteFault(Self.notBegun, error, namespace)
      try? await engine.parts.time.sleep(for: Self.retryPause)  // a stop ends it
    }
    running[namespace] = nil
    look(namespace)
  }

  private static let notBegun = "commands can't be written down, and do not begin; tried again"

  private func noteFault(_ message: String, _ error: StoreError, _ namespace: NamespaceName) {
    engine.parts.log.fault(
      "commands.\(namespace)", message, ["namespace": namespace.text, "cause": error.description])
  }

  private func records(of namespace: NamespaceName) async throws(StoreError) -> [StoredRecord] {
    var records: [StoredRecord] = []
    while true {
      let page = try await engine.parts.store.commands(of: namespace, after: records.last?.id)
      records += page.records
      if !page.isMore { return records }
    }
  }

  /// nil before the server's clock is known.
  private func judge(_ namespace: NamespaceName) -> CommandJudge? {
    guard let clock = engine.parts.puller.clocks[namespace] else { return nil }
    let (daemon, time) = (engine.hub.current.daemon, engine.parts.time)
    return CommandJudge(
      namespace: namespace, deviceID: daemon.deviceId ?? engine.automaticDeviceID, rules: daemon.commands,
      now: clock.now(at: time.uptime), proven: clock.proven(at: time.uptime, own: time.unixMilliseconds))
  }

  // MARK: Steps

  /// - Returns: the record as it is now; nil if it was changed meanwhile, which is looked at next.
  private func accept(
    _ record: StoredRecord, _ order: CommandJudge.Order, _ namespace: NamespaceName
  ) async throws(StoreError) -> StoredRecord? {
    let answer = answer(.accepted)
    let mark = CommandMark(order.request, hasBegun: false)
    guard try await write(answer, record, namespace, mark: mark) == .written else { return nil }
    var accepted = record
    accepted.fields = answer.written(into: record.json).bytes
    accepted.changedTime = engine.parts.time.unixMilliseconds
    return accepted
  }

  /// Ends a command that does not begin.
  private func end(
    _ verdict: CommandJudge.Verdict, _ record: StoredRecord, _ namespace: NamespaceName
  ) async throws(StoreError) {
    switch verdict {
    case .nothing, .waits: return
    case .unproven: engine.parts.puller.clocks.waitForProof(namespace)
    case .expired: try await end(answer(.expired), "expired", record, namespace)
    case .refused(let refusal):
      let type: ReportType? = if case .notAsked(let asked) = refusal { asked } else { nil }
      try await end(answer(.refused, .string(refusal.message)), refusal.label, record, namespace, refused: type)
    }
  }

  private func end(
    _ answer: CommandAnswer, _ label: String, _ record: StoredRecord, _ namespace: NamespaceName,
    refused type: ReportType? = nil
  ) async throws(StoreError) {
    guard try await write(answer, record, namespace, refused: type) == .written else { return }
    noteEnd(answer.state, label, record, namespace)
  }

  func noteEnd(_ state: CommandState, _ label: String, _ record: StoredRecord, _ namespace: NamespaceName) {
    counts.add(label, namespace)
    engine.parts.log.warning(
      "a command was not carried out",
      ["namespace": namespace.text, "id": record.commandID.text, "state": state.rawValue, "cause": label])
  }

  /// Begins a command once that is written down, and writes its end down.
  private func carryOut(_ record: StoredRecord, _ namespace: NamespaceName) async throws(StoreError) {
    await takePlace()
    defer { givePlace() }
    // The time and the configuration may have changed while it waited.
    guard isServing, let judge = judge(namespace) else { return }
    let (marks, forgottenThrough) = try await engine.parts.store.commandMarks(of: namespace)
    let verdict = judge.verdict(on: record, mark: marks[record.commandID], forgottenThrough: forgottenThrough)
    guard case .waits(let order) = verdict else { return try await end(verdict, record, namespace) }
    let mark = CommandMark(order.request, hasBegun: true)
    guard try await write(answer(.running), record, namespace, mark: mark) == .written else { return }
    let (id, name) = (record.commandID, order.request.name.rawValue)
    engine.parts.log.info("a command begins", ["namespace": namespace.text, "id": id.text, "command": name])
    guard let ended = try await perform(order.action, record, namespace) else { return }
    counts.add(ended.isDone ? "done" : "failed", namespace)
    engine.parts.log.info(
      "a command ended",
      ["namespace": namespace.text, "id": id.text, "command": name, "state": ended.isDone ? "done" : "failed"])
  }

  /// - Returns: the end, written down; nil if it was stopped before: the next start says that it was interrupted.
  private func perform(
    _ action: CommandAction, _ record: StoredRecord, _ namespace: NamespaceName
  ) async throws(StoreError) -> CommandEnd? {
    let origin = CommandOrigin(namespace: namespace, id: record.commandID)
    let ended: CommandEnd
    switch action {
    case .ask(let question): return try await answer(question, record, namespace)
    case .flush:
      ended = await engine.flush(namespace) ? .done() : .failed("the namespace is not configured any more")
    case .requeue, .drop: ended = await settleDead(isRequeue: action == .requeue, namespace)
    case .doctor: ended = await tools.doctor(for: origin)
    case .log(let level, let duration):
      engine.parts.log.borrow(level, for: duration)
      ended = .done(.string("\(level.rawValue) for \(duration.components.seconds / 60) min"))
    case .collect(let path): ended = await tools.collect(path, for: origin)
    case .run(let unit): ended = await tools.run(unit, for: origin)
    case .acceptStore(let store): ended = await accept(store, namespace)
    case .erase(let value): ended = await erase(value, namespace)
    case .trigger(let order): return try await carryOut(order, record, namespace)
    }
    guard !Task.isCancelled else { return nil }
    try await finish(record, answer(ended.isDone ? .done : .failed, ended.result), namespace)
    return ended
  }

  private func accept(_ store: StoreMark, _ namespace: NamespaceName) async -> CommandEnd {
    guard let pipeline = await engine.pipelines[namespace] else { return .failed("the namespace is not configured") }
    do throws(StoreError) {
      switch try await pipeline.acceptStore(store) {
      case .nothingKnown: return .failed("no store gave its identity yet")
      case .isOther(let latest): return .failed(.string("the store that answered last is \(latest), not \(store)"))
      case .accepted(let store, let isNews): return .done(.string("accepted \(store)\(isNews ? "" : " before")"))
      }
    } catch { return .failed(.string("the store failed: \(error)")) }
  }

  private func settleDead(isRequeue: Bool, _ namespace: NamespaceName) async -> CommandEnd {
    do throws(StoreError) {
      let count = try await engine.settle(.all(namespace), isRequeue: isRequeue, of: namespace)
      return .done(.string("\(isRequeue ? "requeued" : "dropped") \(count)"))
    } catch { return .failed(.string("the store failed: \(error)")) }
  }

  /// Tries until it is written: the command has ended, and only this knows how.
  @discardableResult func finish(
    _ record: StoredRecord, _ answer: CommandAnswer, _ namespace: NamespaceName, _ question: QuestionRun? = nil,
    order: TriggerOrder? = nil
  ) async throws(StoreError) -> QuestionAnswer? {
    while true {
      do throws(StoreError) {
        var step = CommandStep(
          namespace: namespace, record: record.id, command: record.commandID, judged: nil, answer: answer, mark: nil)
        step.order = order
        var found: QuestionAnswer?
        if let question {
          found = try await engine.parts.store.finish(question, step).answer
        } else {
          _ = try await engine.parts.store.write(step)
        }
        await tellPipeline(namespace)
        return found
      } catch {
        noteFault("the end of a command can't be written down; tried again", error, namespace)
        do { try await engine.parts.time.sleep(for: Self.retryPause) } catch { return nil }  // stopped
      }
    }
  }

  private func write(
    _ answer: CommandAnswer, _ record: StoredRecord, _ namespace: NamespaceName, mark: CommandMark? = nil,
    refused type: ReportType? = nil
  ) async throws(StoreError) -> CommandStep.Outcome {
    var step = CommandStep(
      namespace: namespace, record: record.id, command: record.commandID, judged: record.fields, answer: answer,
      mark: mark)
    step.refused = type
    let outcome = try await engine.parts.store.write(step)
    switch outcome {
    case .written: await tellPipeline(namespace)
    // The change of the record leads to the next look.
    case .changed, .begunBefore: due.insert(namespace)
    case .noRoom:
      engine.parts.log.fault(
        "commands.\(namespace).room", "the record of a command has no room for an answer; delete it at the server",
        ["namespace": namespace.text, "id": record.commandID.text])
    }
    return outcome
  }

  func answer(_ state: CommandState, _ result: JSONValue? = nil) -> CommandAnswer {
    CommandAnswer(state, result: result, stateTime: engine.parts.time.unixMilliseconds)
  }

  private func tellPipeline(_ namespace: NamespaceName) async {
    guard let pipeline = await engine.pipelines[namespace] else { return }
    await pipeline.synchronizing { $0.commandAnswered() }
  }

  // MARK: Places

  private func takePlace() async {
    if places > 0 {
      places -= 1
      return
    }
    await withCheckedContinuation { waiters.append($0) }
  }

  private func givePlace() {
    if waiters.isEmpty { places += 1 } else { waiters.removeFirst().resume() }
  }
}

extension StoredRecord {
  fileprivate var json: JSONValue { (try? JSONValue(parsing: fields)) ?? .object([]) }
}

extension CommandAnswer {
  fileprivate init?(_ record: StoredRecord) { self.init(fields: record.json) }
}

extension StoredRecord {
  /// A daemon began to carry it out, and did not write its end down.
  fileprivate var isRunning: Bool { CommandAnswer(self)?.state == .running }
}
