import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore

/// How one namespace and kind delivers. A value that takes what happened and says what to do: it knows no store, no
/// network, no clock and no task. `NamespacePipeline` does what it says and tells it what came of it.
///
/// A drain lasts from the first request until nothing waits, a gate shuts, or a failure asks for a pause. While packets are
/// on their way, the next ones are claimed, in the commit that settles those before, and built. Packets that the receiver
/// holds, because one before them failed, stay on their way over the pause.
struct Delivery: Sendable {
  private static let pauseAfterStoreFailure: Duration = .seconds(2)
  /// As long as the longest pause of a namespace that is held.
  private static let setBackDuration: Duration = .seconds(600)

  let kind: RowKind
  private(set) var upload = UploadState.idle
  private(set) var queue = InFlightQueue()
  private(set) var retry = RetryRecord()
  private(set) var counters = EngineCounters()
  private(set) var receiver = KnownReceiver()
  /// When a packet was accepted last, in milliseconds since 1970.
  private(set) var lastSuccess: Int64?
  /// The last answer for which a report waits while others go on.
  private(set) var lastSetBack: RetryRecord.Failure?
  /// When reports that wait while others go on are tried again, on the uptime clock: the first of them sets it.
  private(set) var setBacksEndAt: Duration?
  /// nil: no drain runs.
  private(set) var drain: Drain?
  private(set) var storeWork: StoreWork?  // it may outlive a drain
  private var owesCommit = false  // an answer came while no drain ran

  /// Nothing failed since the drain began.
  var maySend: Bool { drain != nil && drain?.failure == nil }

  init(kind: RowKind) { self.kind = kind }

  mutating func handle(_ event: Event, _ now: Conditions) -> [Action] {
    let actions = apply(event, now)
    var now = now
    if actions.contains(where: \.isNote) { now.hasNotes = true }
    return actions + proceed(now)
  }

  private mutating func apply(_ event: Event, _ now: Conditions) -> [Action] {
    switch event {
    case .upload(let event):
      if case .trigger(.network, _) = event { receiver.networkChanged(sending: queue.sendingCount) }
      if case .trigger(.reload, _) = event { receiver.configurationChanged() }
      if upload.handle(event, now: now.instant.uptime) { begin() }
    case .setBacksEnded:
      // One that the store does not know yet begins its time now.
      setBacksEndAt = queue.setsBack ? now.instant.uptime + Self.setBackDuration : nil
    case .restored(let record):
      retry = record
      if let pause = record.pause { _ = upload.handle(.failed(pause), now: now.instant.uptime) }
    case .collector(let address): return follow(address, now)
    case .recovered(let inFlight, let lastAccepted, let sender):
      storeWork = nil
      queue.recover(inFlight, lastAccepted: lastAccepted, sender: sender)
    case .looked(let hasRows):
      storeWork = nil
      if hasRows { drain?.hasLooked = true } else { queue.isExhausted = true }
    case .committed(let claimed): committed(claimed, now)
    case .read(let id, let packet):
      storeWork = nil
      if let packet { queue.fill(packet) } else { queue.drop(id) }
    case .storeFailed:
      storeWork = nil
      if drain == nil { queue.lose() } else { drain?.storeFailed = true }
    case .built(let packets): keep(packets)
    case .notBuilt(let ids, let error): return notBuilt(ids, error, now)
    case .answered(let id, let outcome): return answered(id, outcome, now)
    case .carry(.recovery) where storeWork == nil && drain == nil && !queue.isRecovered:
      storeWork = .recovery
      return [.recover]
    case .carry(let event):
      let decided = queue.carry(event, now)
      owesCommit = owesCommit || decided != nil && drain == nil
      if case .dead(_, let cause) = decided { return [.log(.deadLetter(status: cause.status))] }
    }
    return []
  }

  /// Failures at another collector say nothing of this one.
  private mutating func follow(_ address: CollectorAddress, _ now: Conditions) -> [Action] {
    let isOther = (retry.collector ?? receiver.address).map { $0 != address } ?? false
    guard isOther else {
      receiver.address = address
      return []
    }
    receiver = KnownReceiver(address: address)
    _ = upload.handle(.trigger(.newCollector, tryAt: now.instant.uptime), now: now.instant.uptime)
    let hadNote = !retry.isClean
    retry.forget()
    return [.circuit(.forgotten)] + (hadNote ? [.rememberRetry(nil)] : [])
  }

  private mutating func begin() {
    drain = Drain()
    receiver.drainBegan()
    // The result of earlier claims says nothing of types that may leave since.
    queue.isExhausted = false
  }

  private mutating func committed(_ claimed: [ClaimedPacket], _ now: Conditions) {
    guard case .commit(let dispositions, let claims) = storeWork else { return }
    storeWork = nil
    queue.committed(dispositions)
    queue.add(claimed, at: now.instant.uptime)
    if claims > 0 || !kind.isReport && dispositions > 0 { queue.isExhausted = claimed.count < claims }
    if drain?.failure != nil { queue.release() }
  }

  private mutating func keep(_ packets: [BuiltPacket]) {
    for packet in packets {
      if queue[packet.context.packetID]?.attempts == 0 {
        counters.built(rawBytes: packet.contents.rawBytes, packedBytes: packet.contents.bodyBytes)
      }
      queue.fill(packet)
    }
  }

  /// Packets that are built ahead say what is wrong with them when it is their turn.
  private mutating func notBuilt(_ ids: [PacketID], _ error: String, _ now: Conditions) -> [Action] {
    let isFirst = queue.entries.first.map { ids.contains($0.id) } ?? false
    for id in ids {
      queue.empty(id)
      queue.wait(id)
    }
    guard isFirst else { return [] }
    return fail(.init(cause: "the packet can't be built: \(error)"), reason: .held, now: now)
  }
}

// MARK: - What to do next

extension Delivery {
  private mutating func proceed(_ now: Conditions) -> [Action] {
    guard let drain else { return settle(now) }
    var actions: [Action] = []
    if let types = openTypes(now) {
      actions += send(now) + build(now)
      if let work = nextWork(types, now) { actions += begin(work, types, now) }
    }
    // After a failure the others that are on their way may be held for long by a receiver that waits for the one that failed.
    let isQuiet = queue.sendingCount == 0 || drain.failure != nil
    return actions.isEmpty && storeWork == nil && isQuiet && !queue.isBuilding ? finish(now) : actions
  }

  /// Commits the answers that came during a pause.
  private mutating func settle(_ now: Conditions) -> [Action] {
    guard owesCommit, storeWork == nil else { return [] }
    owesCommit = false
    guard !queue.dispositions.isEmpty || now.hasNotes else { return [] }
    storeWork = .commit(dispositions: queue.dispositions.count, claims: 0)
    return [.commit(UploadCommit(dispositions: queue.dispositions))]
  }

  /// nil: nothing more may leave in this drain.
  private func openTypes(_ now: Conditions) -> Claim.TypeFilter? {
    guard upload.isDraining, let drain, drain.failure == nil, !drain.storeFailed, case .open(let types) = now.verdict
    else { return nil }
    return types
  }

  private mutating func send(_ now: Conditions) -> [Action] {
    var actions: [Action] = []
    var flowRest = now.flowRestBytes
    while let action = sendNext(now, &flowRest) { actions.append(action) }
    return actions
  }

  /// Rows that leave on unmetered networks only don't leave on another because they were claimed before it changed.
  private mutating func sendNext(_ now: Conditions, _ flowRest: inout Int?) -> Action? {
    guard let next = queue.next, case .built(let packet) = next.content else { return nil }
    // A reload or another network since it was built: it is built again.
    guard packet.seal == seal(of: next, now), packet.wifiOnlyTypes == now.wifiOnlyTypes else {
      queue.empty(next.id)
      return nil
    }
    guard hasRoom(for: next, now) else { return nil }
    guard !(now.isMetered && packet.hasWifiOnlyRows) else {
      queue.hold(next.id)
      return nil
    }
    let bodyBytes = packet.contents.bodyBytes
    let cost = OutgoingPacket.estimatedBytes(bodyBytes: bodyBytes)
    guard queue.sendingCount == 0 || queue.sendingBytes + bodyBytes <= SendWindow.bodyBytesMax else { return nil }
    let neededBytes = now.neededBytes(next, cost: cost)
    guard flowRest.map({ neededBytes <= $0 }) ?? true else {
      if queue.sendingCount == 0 { queue.postpone(next.id, neededBytes, rawBytes: packet.contents.rawBytes) }
      return nil
    }
    flowRest = flowRest.map { $0 - cost }
    let predecessor = queue.predecessor(of: next.id)
    queue.began(next.id, .init(bodyBytes: bodyBytes, format: packet.contents.format, collector: receiver.address))
    drain?.hasPosted = true
    return .post(
      packet, dependsOn: predecessor, pending: queue.pendingCount(before: next.id),
      needsNewConnection: next.needsNewConnection)
  }

  private mutating func build(_ now: Conditions) -> [Action] {
    let entries = queue.nextToBuild
    guard let first = entries.first, let seal = seal(of: first, now) else { return [] }
    queue.builds(entries.map(\.id))
    return [.build(entries.compactMap(\.claimed), seal, wifiOnly: now.wifiOnlyTypes)]
  }

  private mutating func begin(_ work: StoreWork, _ types: Claim.TypeFilter, _ now: Conditions) -> [Action] {
    storeWork = work
    switch work {
    case .recovery: return [.recover]
    case .look: return [.look]
    case .reading(let id): return [.read(id)]
    case .commit(_, let claims):
      var turn = UploadCommit(dispositions: queue.dispositions)
      guard claims > 0, let configuration = now.configuration, let seal = now.seal else { return [.commit(turn)] }
      if let sender = queue.claims(as: seal.deviceID) {
        turn.notes = [Note(namespace: configuration.name, key: StreamIdentity.key(kind), value: sender.note)]
      }
      turn.claims = ClaimPlan.claims(
        claims, bytesMax: queue.claimBytesMax, idTimeMin: receiver.idTimeMin, configuration, kind, types, now)
      return [.commit(turn)]
    }
  }

  /// Nothing is under way and nothing may begin.
  private mutating func finish(_ now: Conditions) -> [Action] {
    if drain?.storeFailed == true {
      queue.lose()
      let pause = UploadState.Pause(until: now.instant.uptime + Self.pauseAfterStoreFailure, reason: .store)
      if drain?.failure.map({ $0.until < pause.until }) ?? true { drain?.failure = pause }
    } else if !queue.dispositions.isEmpty || now.hasNotes {
      storeWork = .commit(dispositions: queue.dispositions.count, claims: 0)
      return [.commit(UploadCommit(dispositions: queue.dispositions))]
    }
    queue.rest()
    let outcome = drain?.failure.map { UploadState.Event.failed($0) } ?? .ended
    drain = nil
    guard upload.handle(outcome, now: now.instant.uptime) else { return [.ended(isOver: true)] }
    begin()
    return [.ended(isOver: false)] + proceed(now)
  }
}

// MARK: - The answer

extension Delivery {
  private mutating func answered(_ id: PacketID, _ outcome: DeliveryOutcome, _ now: Conditions) -> [Action] {
    guard let entry = queue[id], entry.isSending else { return [] }
    let maySetBack = kind.isReport && receiver.maySetBack
    let attempt = entry.attempt(now.instant, maySetBack: maySetBack)
    queue.answered(id, outcome)
    let milliseconds = now.instant.unixMilliseconds
    owesCommit = drain == nil
    counters.answered(outcome, attempt: entry.attempts)
    // A reload since it left named another collector.
    let isOfFormer = receiver.address != entry.lastAttempt.collector
    if !isOfFormer { receiver.answered(entry, outcome, configured: now.windowMax, now: now.instant.uptime) }
    switch DeliveryDecision(outcome.verdict, attempt, newID: { now.newID() }) {
    case .settled(let disposition):
      queue.settle(id, disposition.with(outcome.records))
      return succeeded(id, disposition, outcome, milliseconds)
    case .split(let disposition, let first, let second):
      queue.split(id, disposition, first: first, second: second)
    case .setBack where isOfFormer: break
    case .setBack(let disposition, let problem):
      queue.settle(id, disposition)
      receiver.setBack()
      setBacksEndAt = setBacksEndAt ?? now.instant.uptime + Self.setBackDuration
      lastSetBack = RetryRecord.Failure(
        unixMilliseconds: milliseconds, status: problem.status, cause: problem.cause, collector: receiver.address)
      return [.log(.setBack(cause: problem.cause, bodyBytes: entry.lastAttempt.bodyBytes))]
    case .again where isOfFormer: break
    case .again(let reason, let problem, let retryAfter):
      return fail(problem, reason: reason, retryAfter: retryAfter, now: now)
    case .remade: queue.remake(id)
    case .confirm: queue.doubt(id)
    case .afterPredecessor(let isOverload):
      queue.wait(id)
      if isOverload { receiver.shrinkWindow() }
    case .withoutDictionary:
      receiver.refused(dictionaryID: entry.lastAttempt.format?.dictionaryID)
    case .inGzip:
      queue.useGzip(id)
    case .carried:
      queue.carried(id)
    case .kept:
      // Only a stop gives up a POST. Anything else that does so is a failure, or the packet would be sent at once for ever.
      return now.isStopping ? [] : fail(.init(cause: "given up by this side"), reason: .failure, now: now)
    }
    return []
  }

  private mutating func succeeded(
    _ id: PacketID, _ disposition: Disposition, _ outcome: DeliveryOutcome, _ unixMilliseconds: Int64
  ) -> [Action] {
    var actions: [Action] = []
    if case .dead(_, let cause) = disposition {
      actions.append(.log(.deadLetter(status: cause.status)))
    } else {
      let isBehind = !retry.isClean && drain.map { $0.failure != nil } ?? true  // it does not end what failed
      lastSuccess = min(unixMilliseconds, isBehind ? retry.lastFailure?.unixMilliseconds ?? .max : .max)
      actions.append(.accepted(id, outcome))
    }
    guard let drain, drain.failure == nil else { return actions }  // it left before what failed
    actions.append(.circuit(.succeeded))
    guard !retry.isClean else { return actions }
    if retry.lastFailure?.status == 413 { actions.append(.endSetBacks) }
    retry.succeeded()
    return actions + [.rememberRetry(nil), .log(.deliveredAgain)]
  }

  private mutating func fail(
    _ problem: DeliveryDecision.Problem, reason: UploadState.Pause.Reason, retryAfter: Duration? = nil, now: Conditions
  ) -> [Action] {
    receiver.shrinkWindow()
    defer { queue.release() }
    guard let drain, drain.failure == nil else { return failAgain(retryAfter, now) }
    let failure = RetryRecord.Failure(
      unixMilliseconds: now.instant.unixMilliseconds, status: problem.status, code: problem.code,
      cause: problem.cause, collector: receiver.address)
    self.drain?.failure = retry.failed(
      failure, reason: reason, retryAfter: retryAfter, random: now.random.next(), now: now.instant.uptime)
    return (failure.isMissingRoute(of: kind) ? [] : [.circuit(.failed)]) + [
      .rememberRetry(retry.note(now: now.instant)), .log(.notDelivered(cause: problem.cause)),
    ]
  }

  /// Packets that were on their way together fail once; the longest wait that the collector asks for holds.
  private mutating func failAgain(_ retryAfter: Duration?, _ now: Conditions) -> [Action] {
    guard let retryAfter, let pause = retry.asked(for: retryAfter, random: now.random.next(), now: now.instant.uptime)
    else { return [] }
    if drain == nil { _ = upload.handle(.failed(pause), now: now.instant.uptime) } else { drain?.failure = pause }
    return [.rememberRetry(retry.note(now: now.instant))]
  }
}
