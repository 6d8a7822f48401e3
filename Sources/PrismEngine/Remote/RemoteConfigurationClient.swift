import PrismBase
public import PrismConfig
import PrismPacket
public import PrismProtocol
import PrismStore

/// Asks for remote configuration, puts it in force, keeps it over restarts, and watches over what is on probation.
/// `RemoteState` decides; this actor does what it says.
public actor RemoteConfigurationClient {
  /// The parts that it needs beside the engine.
  public struct Parts: Sendable {
    /// Asks the server.
    public var source: any Transport
    /// Keeps the last answer over restarts.
    public var cache: any KeptFile
    /// The device id if the configuration has no `device.id`.
    public var deviceID: String
    /// The whole of one question.
    public var timeout: Duration

    public init(
      source: any Transport, cache: any KeptFile, deviceID: String, timeout: Duration = .seconds(30)
    ) {
      (self.source, self.cache, self.deviceID, self.timeout) = (source, cache, deviceID, timeout)
    }
  }

  // Unpacking and parsing megabytes would hold a thread of the cooperative pool.
  private let executor = DispatchQueueExecutor(label: "prism.remote")
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  let engine: Engine
  let stack: ConfigurationStack
  let parts: Parts
  private(set) var state: RemoteState
  private var saved: RemoteRecord?
  private var isSaving = false
  private var question: Task<Void, Never>?
  private var questions = 0
  /// Changes of the configuration, one after another: an event carries the configuration in force when it comes.
  private var turns: Task<Void, Never>?
  private var timer: (at: Duration, task: Task<Void, Never>)?
  private var loops: [Task<Void, Never>] = []

  var now: Duration { engine.parts.time.uptime }
  var log: Logger { engine.parts.log }

  /// - Parameter engine: runs on `start.current` already.
  public init(_ start: RemoteStart, engine: Engine, stack: ConfigurationStack, parts: Parts) {
    (state, saved) = (start.state, start.saved)
    (self.engine, self.stack, self.parts) = (engine, stack, parts)
  }

  /// Begins to ask; nothing waits for the answer.
  public func start() async {
    handle(.configured(engine.hub.current.daemon.remote))
    let (versions, changes) = (engine.news.versions, engine.parts.network.changes())
    loops = [
      Task { [weak self] in for await version in versions { await self?.handle(.announced(version)) } },
      Task { [weak self] in for await state in changes where state.kind != .none { await self?.networkCame() } },
    ]
  }

  /// Ends the questions; the configuration in force stays.
  public func stop() {
    handle(.stop)
    for task in loops + [timer?.task, question].compactMap({ $0 }) { task.cancel() }
  }

  /// Puts files that are new in force, under the remote layer.
  public func replace(files: LoadedConfiguration) async -> ConfigurationStack.Outcome {
    let before = turns
    let task = Task {
      await before?.value
      return await put(files)
    }
    turns = Task { _ = await task.value }
    return await task.value
  }

  // MARK: What is decided, and what is done

  private func handle(_ event: RemoteState.Event) {
    let before = state
    let action = state.handle(event, now: Instant(engine.parts.time), random: engine.parts.random.next())
    tell(before)
    switch action {
    case .nothing: break
    case .giveUp: giveUp()
    case .ask(let since): ask(since: since)
    case .apply(let layer):
      let earlier = turns
      turns = Task {
        await earlier?.value
        await put(layer)
      }
    }
    arm()
    if state.record != saved { Task { await save() } }
  }

  private func networkCame() {
    handle(.network(tryAt: now + UploadSchedule.networkJitter.share(engine.parts.random.next())))
  }

  private func giveUp() {
    question?.cancel()
    questions += 1
  }

  private func ask(since: Int64?) {
    giveUp()
    let number = questions
    question = Task {
      let event = await answer(since: since)
      if number == questions { handle(event) }
    }
  }

  /// The question may be of an older reload, while `state` asks another server by now; then its answer is ignored.
  private func answer(since: Int64?) async -> RemoteState.Event {
    guard let remote = state.source else { return .due }
    var question = ConfigurationQuestion(deviceID: engine.hub.current.daemon.deviceId ?? parts.deviceID)
    (question.updateTime, question.version) = (since, state.layer.version)
    question.lastApplied = state.lastApplied?.number
    question.lastFailed = state.lastFailed.map { $0.number.map { String($0) } ?? "unreadable" }
    question.reason = state.lastFailed?.reason.cut(atBytes: ConfigurationQuestion.reasonBytesMax)
    var request = TransferRequest(
      get: question.url(remote.url), headers: [("Accept", "application/json")] + proof(question, to: remote.url),
      timeout: parts.timeout, answerBytesMax: RemoteRecord.answerBytesMax)
    request.tls = remote.tls
    if let token = remote.token { request.headers.append(token.authorization) }
    let outcome = await parts.source.post(request).outcome
    return RemoteState.Event(outcome, publicKey: remote.publicKey, now: engine.parts.time.unixMilliseconds)
  }

  /// By the key of a namespace whose packets go to the same collector; empty: no packets do, and another server needs no proof.
  private func proof(_ question: ConfigurationQuestion, to url: String) -> [(name: String, value: String)] {
    let snapshot = engine.hub.current
    for (_, namespace) in snapshot.namespaces.sorted(by: { $0.key < $1.key }) {
      guard let base = namespace.url.map({ CollectorAddress($0).base }), url.hasPrefix(base + "/"),
        let key = snapshot.daemon.keys.first(where: { $0.id == namespace.keyId })
      else { continue }
      // Without memory it is asked without a proof.
      return (try? question.proof(cipher: namespace.cipher, keyID: key.id, key: key.secret)) ?? []
    }
    return []
  }

  private func put(_ files: LoadedConfiguration) async -> ConfigurationStack.Outcome {
    let outcome = await stack.replace(files: files)
    if let dropped = outcome.dropped { handle(.dropped(reason: dropped.reason)) }
    handle(.configured(files.snapshot.daemon.remote))
    return outcome
  }

  private func put(_ layer: RemoteLayer) async {
    // Remote configuration may have been turned off before this came to its turn.
    guard case .applying(layer, _) = state.phase else { return }
    do throws(ConfigurationFaults) {
      let change = try await stack.replace(remote: Array(layer.entries.values))
      tell(change)
      handle(.applied(changed: await engine.proven(among: change)))
    } catch {
      handle(.notApplied(reason: error.reason))
    }
  }

  // MARK: Time

  /// One sleeping task, to the next thing that is due.
  private func arm() {
    let due = state.due
    guard due != timer?.at else { return }
    timer?.task.cancel()
    timer = nil
    guard let due else { return }
    let time = engine.parts.time
    let task = Task { [weak self] in
      do { try await time.sleep(until: due) } catch { return }  // cancelled: another one is armed
      await self?.tick()
    }
    timer = (due, task)
  }

  private func tick() async {
    timer = nil
    if let due = state.sampleDue, due <= now {
      handle(.sampled(await engine.samples(of: Array(state.layer.trials.keys))))
    }
    handle(.due)
  }

  // MARK: Keeping

  /// A published configuration is in force, whether the cache can be written or not.
  private func save() async {
    guard !isSaving else { return }  // the loop below sees what is newer
    isSaving = true
    defer { isSaving = false }
    while let record = state.record, record != saved {
      do {
        try await parts.cache.write(try record.bytes())
        saved = record
        log.faultEnded("remote.cache", "remote configuration is kept over restarts again")
      } catch {
        log.fault(
          "remote.cache", "remote configuration can't be kept: a start without network will not have it",
          ["cause": "\(error)"])
        return
      }
    }
  }
}

// The facts by which probation is judged.
extension Engine {
  /// Namespaces that `change` configures otherwise, and whose packets were accepted at some time.
  func proven(among change: ConfigurationChange) async -> Set<NamespaceName> {
    var result: Set<NamespaceName> = []
    for (name, new) in change.new.namespaces {
      guard let old = change.old.namespaces[name], old != new else { continue }
      for kind in RowKind.all {
        // A store that can't be read: then nothing is known of it, and nothing will be taken back.
        if (try? await parts.store.lastAccepted(name, kind)) != nil { result.insert(name) }
      }
    }
    return result
  }

  func samples(of names: [NamespaceName]) async -> [NamespaceName: RemoteState.Sample] {
    var result: [NamespaceName: RemoteState.Sample] = [:]
    for name in names { result[name] = await pipelines[name]?.sample }
    return result
  }
}

extension NamespacePipeline {
  var sample: RemoteState.Sample { .init(isProven: proof.isProven, deliveries) { gates($0).mayTry } }
}

extension RemoteState.Sample {
  /// - Parameter mayTry: nothing but a failure of the last try keeps rows of the kind.
  fileprivate init(isProven: Bool, _ deliveries: PerKind<Delivery>, mayTry: (RowKind) -> Bool) {
    let isTrying = RowKind.all.contains { kind in
      switch deliveries[kind].upload {
      case .draining: true
      case .paused(let pause): pause.reason != .store && mayTry(kind)
      case .idle, .stopped: false
      }
    }
    self.init(isProven: isProven, isTrying: isTrying)
  }
}
