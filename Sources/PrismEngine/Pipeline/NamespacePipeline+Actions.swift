import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore

// Does what `Delivery` says, and tells it what came of it.
extension NamespacePipeline {
  func tell(_ kind: ReportKind, _ event: Delivery.Event) {
    for action in deliveries[kind].handle(event, conditions(kind)) { perform(action, kind) }
  }

  private func conditions(_ kind: ReportKind) -> Delivery.Conditions {
    let gates = gates(kind)
    return Delivery.Conditions(
      instant: Instant(uptime: now, unixMilliseconds: parts.time.unixMilliseconds), random: parts.random,
      verdict: gates.verdict, isMetered: gates.isMetered, isStopping: isStopping, hasNotes: !notes.isEmpty,
      configuration: settings.configuration, seal: settings.seal(isMetered: gates.isMetered),
      wifiOnlyTypes: settings.wifiOnlyTypes)
  }

  private func perform(_ action: Delivery.Action, _ kind: ReportKind) {
    switch action {
    case .recover: begin { await $0.askStore(kind) { pipeline throws(StoreError) in try await pipeline.recover(kind) } }
    case .look:
      wishes.willClaim(kind)  // before the look: what comes after it is another wish
      begin { await $0.tell(kind, .looked(hasRows: $0.parts.store.hasWaiting($0.namespace, kind))) }
    case .read(let id):
      begin {
        await $0.askStore(kind) { pipeline throws(StoreError) in .read(id, try await pipeline.parts.store.read(id)) }
      }
    case .commit(let turn):
      begin { await $0.askStore(kind) { pipeline throws(StoreError) in try await pipeline.commit(turn, kind) } }
    case .build(let packets, let seal, let wifiOnly): begin { await $0.build(packets, seal, wifiOnly, kind) }
    case .post(let packet, let predecessor, let needsNewConnection):
      post(packet, dependsOn: predecessor, needsNewConnection, kind)
    case .rememberRetry(let note): notes[Self.retryKey(kind)] = .some(note)
    case .accepted(let answer): accepted(kind, answer)
    case .circuit(.succeeded):
      if circuit.isOpen { wish(.rows) }  // the other kind waited for this probe
      circuit.succeeded()
    case .circuit(.failed): circuit.failed(kind)
    case .log(let message): log(message, kind)
    case .ended(let isOver):
      parts.log.faultEnded(
        "dead.\(namespace).\(kind.rawValue)", "no more dead letters in this upload", ["namespace": namespace.text])
      circuit.ended(kind)
      if isOver { drained(kind) }
    }
  }

  // MARK: The store

  /// Tells what `ask` answers, or that the store failed.
  private func askStore(
    _ kind: ReportKind, _ ask: (NamespacePipeline) async throws(StoreError) -> Delivery.Event
  ) async {
    do throws(StoreError) {
      tell(kind, try await ask(self))
    } catch {
      parts.log.fault(
        "store.\(namespace).\(kind.rawValue)", "delivery waits for the store", ["cause": error.description])
      tell(kind, .storeFailed)
    }
  }

  private func recover(_ kind: ReportKind) async throws(StoreError) -> Delivery.Event {
    let inFlight = try await parts.store.inFlight(namespace, kind)
    let lastAccepted = try await parts.store.lastAccepted(namespace, kind)
    let note = try await parts.store.note(namespace, Self.senderKey(kind))
    return .recovered(inFlight, lastAccepted: lastAccepted, sender: note.flatMap { StreamIdentity(note: $0) })
  }

  /// With the notes of the moment in which the store is asked: of two commits the later one has the newer notes.
  private func commit(_ turn: UploadTurn, _ kind: ReportKind) async throws(StoreError) -> Delivery.Event {
    if !turn.claims.isEmpty { wishes.willClaim(kind) }
    var turn = turn
    turn.notes = notes.map { Note(namespace: namespace, key: $0.key, value: $0.value) } + turn.notes
    notes = [:]
    let packets: [ClaimedPacket?]
    do { packets = try await parts.store.turn(turn) } catch {
      for note in turn.notes where notes[note.key] == nil { notes[note.key] = .some(note.value) }
      throw error
    }
    parts.log.faultEnded("store.\(namespace).\(kind.rawValue)", "the store works again")
    return .committed(packets.compactMap { $0 })
  }

  // MARK: Packets

  private func build(
    _ packets: [ClaimedPacket], _ seal: PacketSeal, _ wifiOnly: Set<ReportType>, _ kind: ReportKind
  ) async {
    do {
      tell(kind, .built(try await parts.builder.build(packets, seal, wifiOnly: wifiOnly)))
    } catch { tell(kind, .notBuilt(packets.map(\.id), error.rawValue)) }
  }

  private func post(
    _ packet: BuiltPacket, dependsOn predecessor: PacketID?, _ needsNewConnection: Bool, _ kind: ReportKind
  ) {
    var request = request(for: packet, dependsOn: predecessor, kind)
    request.needsNewConnection = needsNewConnection
    let isMetered = gates(kind).isMetered
    let booked = isMetered ? book(UploadHeaders.estimatedBytes(request)) : 0
    postedEdition[kind] = edition
    circuit.started(kind)
    begin { [request] pipeline in
      let answer = await pipeline.parts.transport.post(request)
      if isMetered { _ = pipeline.book(answer.bytesSent + answer.bytesReceived - booked) }
      pipeline.tell(kind, .answered(packet.context.packetID, answer))
    }
  }

  private func request(for packet: BuiltPacket, dependsOn predecessor: PacketID?, _ kind: ReportKind) -> UploadRequest {
    let token = settings.configuration?.token.map { String(decoding: $0.content.bytes, as: UTF8.self) }
    var request = UploadRequest(
      url: settings.collector?.endpoint(kind.rawValue) ?? "",
      headers: UploadHeaders.make(packet, dependsOn: predecessor, token: token), body: packet.body,
      connectTimeout: UploadHeaders.connectTimeout, timeout: UploadHeaders.timeout(bodyBytes: packet.body.count))
    if let tls = settings.configuration?.tls { request.tls = tls }
    return request
  }

  private func book(_ bytes: Int) -> Int {
    flow.roll(Instant(parts.time))
    flow.book(bytes)
    notes[Self.flowKey] = flow.note(now: Instant(parts.time))
    return bytes
  }

  private func accepted(_ kind: ReportKind, _ answer: UploadAnswer) {
    provenEdition = postedEdition[kind]
    guard case .response(_, let headers, _) = answer.outcome,
      let version = headers["prism-config-version"].flatMap({ Int64($0) })
    else { return }
    parts.announcements.yield(version)
  }

  private func log(_ message: Delivery.Message, _ kind: ReportKind) {
    let upload = "upload.\(namespace).\(kind.rawValue)"
    switch message {
    case .deadLetter(let status):
      parts.log.fault(
        "dead.\(namespace).\(kind.rawValue)",
        "the collector can't take a report: it is a dead letter (prismctl dead list)",
        ["namespace": namespace.text, "kind": kind.rawValue, "status": String(status)])
    case .notDelivered(let cause):
      parts.log.fault(
        upload, "not delivered; tried again with growing pauses",
        ["namespace": namespace.text, "kind": kind.rawValue, "cause": cause])
    case .deliveredAgain: parts.log.faultEnded(upload, "delivered again", ["namespace": namespace.text])
    }
  }
}
