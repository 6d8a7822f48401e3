import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore

// Does what `Delivery` says, and tells it what came of it.
extension NamespacePipeline {
  func tell(_ kind: RowKind, _ event: Delivery.Event) {
    for action in deliveries[kind].handle(event, conditions(kind)) { perform(action, kind) }
  }

  private func conditions(_ kind: RowKind) -> Delivery.Conditions {
    let gates = gates(kind)
    return Delivery.Conditions(
      instant: Instant(uptime: now, unixMilliseconds: parts.time.unixMilliseconds), random: parts.random,
      verdict: gates.verdict, isMetered: gates.isMetered, flowRestBytes: gates.flowRestBytes, isProbe: circuit.isOpen,
      shares: .init(packetsMax: parts.packetsMax, hasContention: parts.store.contention.isPresent),
      isStopping: isStopping, hasNotes: !notes.isEmpty,
      configuration: settings.configuration, seal: settings.seal(isMetered: gates.isMetered)?.with(dictionaryInUse),
      wifiOnlyTypes: settings.wifiOnlyTypes(kind))
  }

  func perform(_ action: Delivery.Action, _ kind: RowKind) {
    switch action {
    case .recover: begin { await $0.askStore(kind) { pipeline throws(StoreError) in try await pipeline.recover(kind) } }
    case .look:
      signal.willClaim(kind)  // before the look: what comes after it is another request
      begin { await $0.tell(kind, .looked(hasRows: $0.parts.store.hasWaiting($0.namespace, kind))) }
    case .read(let id):
      begin {
        await $0.askStore(kind) { pipeline throws(StoreError) in .read(id, try await pipeline.parts.store.read(id)) }
      }
    case .commit(let turn):
      begin { await $0.askStore(kind) { pipeline throws(StoreError) in try await pipeline.commit(turn, kind) } }
    case .build(let packets, let seal, let wifiOnly): begin { await $0.build(packets, seal, wifiOnly, kind) }
    case .post(let packet, let predecessor, let pending, let needsNewConnection):
      post(packet, dependsOn: predecessor, pending, needsNewConnection)
    case .rememberRetry(let note): notes[RetryRecord.noteKey(kind)] = .some(note)
    case .accepted(let packet, let outcome): accepted(packet, outcome)
    case .circuit(.succeeded):
      if circuit.isOpen { records.circuitClosed() }
      closeCircuit()
    case .circuit(.failed): circuit.failed(kind)
    case .circuit(.forgotten): circuit = Circuit()
    case .endSetBacks:
      noteSetBacksEnd()
      begin {
        await $0.endSetBacks()
        await $0.reportsCameBack()
      }
    case .log(let message): message.write(to: parts.log, namespace, kind)
    case .ended(let isOver):
      parts.log.faultEnded(
        "dead.\(namespace).\(kind.name)", "no more dead letters in this upload", ["namespace": namespace.text])
      circuit.ended(kind)
      if isOver { drained(kind) }
    }
  }

  func closeCircuit() {
    if circuit.isOpen { requestUpload(.rows) }  // the others waited for this probe
    circuit.succeeded()
  }

  // MARK: The store

  /// Tells what `ask` answers, or that the store failed.
  private func askStore(
    _ kind: RowKind, _ ask: (NamespacePipeline) async throws(StoreError) -> Delivery.Event
  ) async {
    do throws(StoreError) {
      tell(kind, try await ask(self))
    } catch {
      parts.log.fault(
        "store.\(namespace).\(kind.name)", "delivery waits for the store", ["cause": error.description])
      tell(kind, .storeFailed)
    }
  }

  private func recover(_ kind: RowKind) async throws(StoreError) -> Delivery.Event {
    let inFlight = try await parts.store.inFlight(namespace, kind)
    let lastAccepted = try await parts.store.lastAccepted(namespace, kind)
    let note = try await parts.store.note(namespace, StreamIdentity.key(kind))
    return .recovered(inFlight, lastAccepted: lastAccepted, sender: note.flatMap { StreamIdentity(note: $0) })
  }

  /// With the notes of the moment in which the store is asked: of two commits the later one has the newer notes.
  private func commit(_ turn: UploadCommit, _ kind: RowKind) async throws(StoreError) -> Delivery.Event {
    if !turn.claims.isEmpty { signal.willClaim(kind) }
    var turn = turn
    for index in turn.claims.indices {
      turn.claims[index].spare = parts.builder.spare
      if !kind.isReport { turn.claims[index].records = records.claim }
    }
    turn.notes = notes.map { Note(namespace: namespace, key: $0.key, value: $0.value) } + turn.notes
    notes = [:]
    let packets: [ClaimedPacket?]
    do { packets = try await parts.store.turn(turn) } catch {
      for note in turn.notes where notes[note.key] == nil { notes[note.key] = .some(note.value) }
      throw error
    }
    parts.log.faultEnded("store.\(namespace).\(kind.name)", "the store works again")
    let trace = PacketLog(parts.log)
    trace.settled(turn.dispositions, namespace, kind)
    trace.claimed(packets)
    return .committed(packets.compactMap { $0 })
  }

  // MARK: Packets

  private func build(_ packets: [ClaimedPacket], _ seal: PacketSeal, _ wifiOnly: TypeSet, _ kind: RowKind) async {
    do {
      let built = try await parts.builder.build(packets, seal, wifiOnly: wifiOnly)
      for packet in packets { parts.builder.spare.keep(packet.metas) }
      tell(kind, .built(built))
    } catch { tell(kind, .notBuilt(packets.map(\.id), error.rawValue)) }
  }

  private func post(_ packet: BuiltPacket, dependsOn predecessor: PacketID?, _ pending: Int, _ onNewConnection: Bool) {
    let kind = packet.context.kind
    let isMetered = gates(kind).isMetered
    let booked = isMetered ? book(OutgoingPacket.estimatedBytes(bodyBytes: packet.contents.bodyBytes)) : nil
    proof.left(packet.context.packetID, to: settings.configuration?.url)
    if carryJob.carrier(kind) == nil { circuit.started(kind) }
    let configuration = settings.configuration
    PacketLog(parts.log).sent(packet)
    begin { await $0.deliver(packet, dependsOn: predecessor, pending, onNewConnection, configuration, booked: booked) }
  }

  /// - Parameter booked: bytes of a metered network; nil: traffic costs nothing.
  private func deliver(
    _ packet: BuiltPacket, dependsOn predecessor: PacketID?, _ pending: Int, _ needsNewConnection: Bool,
    _ configuration: NamespaceConfiguration?, booked: Int?
  ) async {
    let (id, kind) = (packet.context.packetID, packet.context.kind)
    var outcome = DeliveryOutcome(.cancelled, mayHaveLeft: false)
    do {
      if let configuration {
        let sealed = try await parts.builder.seal(packet, dependsOn: predecessor, pendingCount: pending, at: parts.time)
        // Another packet may have been answered meanwhile: wait.
        if deliveries[kind].maySend {
          let output: any Output = carryJob.carrier(kind) ?? parts.output
          outcome = await output.deliver(
            OutgoingPacket(
              headers: sealed.headers, body: sealed.body, mac: sealed.mac, needsNewConnection: needsNewConnection,
              configuration: configuration, key: packet.seal.key))
        }
      }
    } catch {
      let cause = "the packet can't be encrypted: \(error)"
      outcome.verdict = .unavailable(status: nil, cause: cause, retryAfter: nil)
    }
    PacketLog(parts.log).answered(packet.context, outcome)
    if let booked { _ = book(outcome.bytesSent + outcome.bytesReceived - booked) }
    tell(kind, .answered(id, outcome))
    proof.answered(id, outcome)
    if let features = outcome.receiver { considerDictionary(features) }
  }

  func book(_ bytes: Int) -> Int {
    flow.roll(Instant(parts.time))
    flow.book(bytes)
    notes[FlowWindow.noteKey] = flow.note(now: Instant(parts.time))
    return bytes
  }

  private func accepted(_ packet: PacketID, _ outcome: DeliveryOutcome) {
    proof.accepted(packet)
    if let receipt = outcome.store { records.accepted(receipt) }
    if let version = outcome.configurationVersion { parts.announcements.yield(version) }
    if let sequence = outcome.recordsVersion { records.announced(sequence) }
  }
}

extension Delivery.Message {
  /// Writes it, once for as long as the fault lasts.
  func write(to log: Logger, _ namespace: NamespaceName, _ kind: RowKind) {
    let upload = "upload.\(namespace).\(kind.name)"
    switch self {
    case .deadLetter(let status):
      log.fault(
        "dead.\(namespace).\(kind.name)",
        "the collector can't take a report: it is a dead letter (prismctl dead list)",
        ["namespace": namespace.text, "kind": kind.name, "status": String(status)])
    case .notDelivered(let cause):
      log.fault(
        upload, "not delivered; tried again with growing pauses",
        ["namespace": namespace.text, "kind": kind.name, "cause": cause])
    case .setBack(let cause, let bodyBytes):
      log.fault(
        "setBack.\(namespace).\(kind.name)",
        "a report is larger than something on the way lets through: it waits, and others go on; raise that limit, then "
          + "`prismctl flush`",
        ["namespace": namespace.text, "kind": kind.name, "bytes": String(bodyBytes), "cause": cause])
    case .deliveredAgain: log.faultEnded(upload, "delivered again", ["namespace": namespace.text])
    }
  }
}
