import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore

// Packet after packet, in their order, until nothing waits or something says stop. While one is on its way, the next is
// claimed (in the commit that settles those before it) and built.
extension NamespacePipeline {
  func drain(_ kind: ReportKind) async {
    repeat { await drainOnce(kind) } while uploads[kind].handle(outcome(kind), now: now) == .drain
  }

  private func outcome(_ kind: ReportKind) -> UploadState.Event { failures[kind].map { .failed($0) } ?? .ended }

  private func drainOnce(_ kind: ReportKind) async {
    failures[kind] = nil
    // What earlier claims found says nothing of types that may leave since.
    lines[kind].isExhausted = false
    do throws(StoreError) {
      while try await sendNext(kind) {}
      if !lines[kind].settlements.isEmpty || !notes.isEmpty { try await commit(kind, claiming: nil) }
    } catch {
      lines[kind].lose()
      parts.log.fault(
        "store.\(namespace).\(kind.rawValue)", "delivery waits for the store", ["cause": error.description])
      failures[kind] = UploadState.Pause(until: now + .seconds(2), reason: .store)
    }
    parts.log.faultEnded(
      "dead.\(namespace).\(kind.rawValue)", "so many became dead letters", ["namespace": namespace.text])
    circuit.ended(kind)
    lines[kind].rest()
  }

  /// One packet. false: the drain is over.
  private func sendNext(_ kind: ReportKind) async throws(StoreError) -> Bool {
    guard uploads[kind].isDraining, failures[kind] == nil, case .open(let types) = gates(kind).verdict else {
      return false
    }
    try await recover(kind)
    if lines[kind].mustCommit { try await commit(kind, claiming: nil) }
    if lines[kind].head == nil {
      try await commit(kind, claiming: types)
      guard lines[kind].head != nil else { return false }
    }
    guard let packet = try await buildHead(kind) else { return lines[kind].head != nil }
    guard isCurrent(packet, kind) else { return true }
    guard mayLeave(packet, kind) else { return lines[kind].head == nil }
    let request = request(for: packet, kind)
    let isMetered = gates(kind).isMetered
    let booked = isMetered ? book(UploadHeaders.estimatedBytes(request)) : 0
    lines[kind].began()
    postedEdition[kind] = edition
    circuit.started(kind)
    let isLast = lines[kind].entries.count == 1 && lines[kind].isExhausted
    async let answer = parts.transport.post(request)
    do throws(StoreError) {
      if !isLast { try await prepareNext(kind, types) }
    } catch {
      await settle(answer, of: packet, kind, booked: booked, isMetered: isMetered)
      throw error
    }
    await settle(answer, of: packet, kind, booked: booked, isMetered: isMetered)
    return lines[kind].head != nil || !lines[kind].isExhausted
  }

  /// Rows that leave on unmetered networks only don't leave on another because they were claimed before it changed.
  private func mayLeave(_ packet: BuiltPacket, _ kind: ReportKind) -> Bool {
    let gates = gates(kind)
    guard case .open = gates.verdict else { return false }
    guard gates.isMetered, packet.hasWifiOnlyRows else { return true }
    lines[kind].dissolve(now: now)
    return false
  }

  // MARK: The store

  private func recover(_ kind: ReportKind) async throws(StoreError) {
    guard !lines[kind].isRecovered else { return }
    if !lines[kind].settlements.isEmpty { try await commit(kind, claiming: nil) }
    let inFlight = try await parts.store.inFlight(namespace, kind)
    let lastAccepted = try await parts.store.lastAccepted(namespace, kind)
    let note = try await parts.store.note(namespace, Self.senderKey(kind))
    lines[kind].recover(inFlight, lastAccepted: lastAccepted, sender: note.flatMap { LineSender(note: $0) })
  }

  /// One commit: what was decided, what is to be remembered, and the next claims where `types` are given.
  private func commit(_ kind: ReportKind, claiming types: Claim.TypeFilter?) async throws(StoreError) {
    if await hasNothing(kind, toClaim: types) { return }
    var turn = UploadTurn(settlements: lines[kind].settlements)
    if let types, let configuration = settings.configuration {
      wishes.willClaim(kind)
      if let sender = lines[kind].claims(as: settings.deviceID) { notes[Self.senderKey(kind)] = .some(sender.note) }
      turn.claims = (0..<ClaimPlan.portion(lastPacketBytes: lines[kind].lastPacketBytes)).map { _ in
        ClaimPlan.claim(
          configuration, kind: kind, types: types, packetID: newID(), now: parts.time.unixMilliseconds)
      }
    }
    turn.notes = notes.map { Note(namespace: namespace, key: $0.key, value: $0.value) }
    notes = [:]
    let packets: [ClaimedPacket?]
    do { packets = try await parts.store.turn(turn) } catch {
      for note in turn.notes where notes[note.key] == nil { notes[note.key] = .some(note.value) }
      throw error
    }
    parts.log.faultEnded("store.\(namespace).\(kind.rawValue)", "the store works again")
    lines[kind].committed(turn.settlements.count, now: now)
    let claimed = packets.compactMap { $0 }
    lines[kind].add(claimed)
    if types != nil { lines[kind].isExhausted = claimed.count < turn.claims.count }
  }

  /// Before the first claim of a device, which is written down: a namespace in which nothing was ever stored would get its
  /// tables for it.
  private func hasNothing(_ kind: ReportKind, toClaim types: Claim.TypeFilter?) async -> Bool {
    guard types != nil, lines[kind].sender?.deviceID != settings.deviceID, lines[kind].settlements.isEmpty,
      notes.isEmpty
    else {
      return false
    }
    wishes.willClaim(kind)  // before the look: what comes after it is another wish
    guard await !parts.store.hasWaiting(namespace, kind) else { return false }
    lines[kind].isExhausted = true
    return true
  }

  /// While the head is on its way: what was claimed is built, and meanwhile what comes after it claimed.
  private func prepareNext(_ kind: ReportKind, _ types: Claim.TypeFilter) async throws(StoreError) {
    if lines[kind].claimedAhead.isEmpty { try await claimMore(kind, types) }
    async let building: Void = buildAhead(kind)  // waited for when claiming fails, too
    try await claimMore(kind, types)
    await building
  }

  private func claimMore(_ kind: ReportKind, _ types: Claim.TypeFilter) async throws(StoreError) {
    let line = lines[kind]
    guard !line.isExhausted, line.mayClaim(as: settings.deviceID),
      ClaimPlan.wantsMore(ahead: line.entries.count - 1, lastPacketBytes: line.lastPacketBytes)
    else { return }
    try await commit(kind, claiming: types)
  }

  private func newID() -> PacketID {
    var random = parts.random
    return PacketID(unixMilliseconds: parts.time.unixMilliseconds, using: &random)
  }

  // MARK: Building

  private func buildHead(_ kind: ReportKind) async throws(StoreError) -> BuiltPacket? {
    guard let head = lines[kind].head else { return nil }
    return try await build(head, kind)
  }

  /// What was claimed behind the head, while that is on its way. What can't be built is told when it is the head.
  private func buildAhead(_ kind: ReportKind) async {
    let claimed = lines[kind].claimedAhead
    guard !claimed.isEmpty, let seal = seal(kind),
      let built = try? await parts.builder.build(claimed, seal, wifiOnly: settings.wifiOnlyTypes)
    else { return }
    for packet in built { keep(packet, kind) }
  }

  private func keep(_ packet: BuiltPacket, _ kind: ReportKind) {
    counters[kind].built(rawBytes: packet.rawBytes, packedBytes: packet.body.count)
    lines[kind].fill(packet.context.packetID, .built(packet))
  }

  /// nil: the packet is gone, because none of its rows is whole; or it can't be built, which is a pause.
  private func build(_ entry: PacketLine.Entry, _ kind: ReportKind) async throws(StoreError) -> BuiltPacket? {
    guard let seal = seal(kind) else { return nil }
    if case .built(let packet) = entry.content, isCurrent(packet, kind) { return packet }
    var claimed: ClaimedPacket?
    if case .claimed(let packet) = entry.content {
      claimed = packet
    } else {
      claimed = try await parts.store.read(entry.id)
    }
    guard let claimed else {
      lines[kind].drop(entry.id)
      return nil
    }
    do {
      let packet = try await parts.builder.build(claimed, seal, wifiOnly: settings.wifiOnlyTypes)
      if lines[kind].head?.id != entry.id || entry.attempts == 0 {
        keep(packet, kind)
      } else {
        lines[kind].fill(entry.id, .built(packet))
      }
      return packet
    } catch {
      fail(kind, .init(cause: "the packet can't be built: \(error.rawValue)"), reason: .held)
      return nil
    }
  }

  /// No reload since it was built, and no other network, says that it is to be built anew.
  private func isCurrent(_ packet: BuiltPacket, _ kind: ReportKind) -> Bool {
    packet.seal == seal(kind) && packet.wifiOnlyTypes == settings.wifiOnlyTypes
  }

  private func seal(_ kind: ReportKind) -> PacketSeal? {
    var seal = settings.seal(isMetered: gates(kind).isMetered)
    if let sender = lines[kind].sender { seal?.deviceID = sender.deviceID }
    return seal
  }

  private func request(for packet: BuiltPacket, _ kind: ReportKind) -> UploadRequest {
    let token = settings.configuration?.token.map { String(decoding: $0.content.bytes, as: UTF8.self) }
    var request = UploadRequest(
      url: settings.collector?.endpoint(kind.rawValue) ?? "",
      headers: UploadHeaders.make(packet, dependsOn: lines[kind].lastAccepted, token: token), body: packet.body,
      connectTimeout: UploadHeaders.connectTimeout, timeout: UploadHeaders.timeout(bodyBytes: packet.body.count))
    if let tls = settings.configuration?.tls { request.tls = tls }
    request.needsNewConnection = lines[kind].head?.needsNewConnection ?? false
    return request
  }

  // MARK: The answer

  private func book(_ bytes: Int) -> Int {
    flow.roll(Instant(parts.time))
    flow.book(bytes)
    notes[Self.flowKey] = flow.note(now: Instant(parts.time))
    return bytes
  }

  private func settle(
    _ answer: UploadAnswer, of packet: BuiltPacket, _ kind: ReportKind, booked: Int, isMetered: Bool
  ) async {
    if isMetered { _ = book(answer.bytesSent + answer.bytesReceived - booked) }
    guard let head = lines[kind].head, head.id == packet.context.packetID else { return }
    lines[kind].answered(mayHaveLeft: answer.mayHaveLeft)
    let unixMilliseconds = parts.time.unixMilliseconds
    let result = AnswerClass(
      answer, to: head.id, receipt: settings.configuration?.receipt ?? .required, now: unixMilliseconds)
    counters[kind].answered(answer, as: result, attempt: head.attempts)
    let attempt = Settling.Attempt(
      packet: head.id, itemCount: packet.itemCount, attempts: head.attempts, now: unixMilliseconds)
    switch Settling(result, attempt, newID: newID) {
    case .settled(let settlement):
      lines[kind].settle(settlement, now: now)
      succeeded(kind, settlement)
      if case .delivered = settlement { accepted(kind, answer) }
    case .split(let settlement, let first, let second):
      lines[kind].split(settlement, first: first, second: second, now: now)
    case .again(let reason, let problem, let retryAfter):
      fail(kind, problem, reason: reason, retryAfter: retryAfter)
    case .confirm: lines[kind].doubt()
    case .kept:
      // Nobody but a stop gives a POST up; should another do so, it is a failure, or it would be sent at once for ever.
      guard !isStopping else { return }
      fail(kind, .init(cause: "given up by this side"), reason: .failure)
    }
  }

  private func accepted(_ kind: ReportKind, _ answer: UploadAnswer) {
    provenEdition = postedEdition[kind]
    guard case .response(_, let headers, _) = answer.outcome,
      let version = headers["prism-config-version"].flatMap({ Int64($0) })
    else { return }
    parts.announcements.yield(version)
  }

  private func succeeded(_ kind: ReportKind, _ settlement: Settlement) {
    if case .dead(_, let cause) = settlement {
      parts.log.fault(
        "dead.\(namespace).\(kind.rawValue)",
        "the collector can't take a report: it is a dead letter (prismctl dead list)",
        ["namespace": namespace.text, "kind": kind.rawValue, "status": String(cause.status)])
    } else {
      lastSuccess = parts.time.unixMilliseconds
    }
    if circuit.isOpen { wish(.rows) }  // the other kind waited for this probe
    circuit.succeeded()
    guard !retries[kind].isClean else { return }
    retries[kind].succeeded()
    notes[Self.retryKey(kind)] = .some(nil)
    parts.log.faultEnded("upload.\(namespace).\(kind.rawValue)", "delivered again", ["namespace": namespace.text])
  }

  private func fail(
    _ kind: ReportKind, _ problem: Settling.Problem, reason: UploadState.Pause.Reason, retryAfter: Duration? = nil
  ) {
    let failure = RetryRecord.Failure(
      unixMilliseconds: parts.time.unixMilliseconds, status: problem.status, code: problem.code, cause: problem.cause)
    let pause = retries[kind].failed(
      failure, reason: reason, retryAfter: retryAfter, random: parts.random.next(), now: now)
    circuit.failed(kind)
    failures[kind] = pause
    lines[kind].dissolve(now: now)
    notes[Self.retryKey(kind)] = retries[kind].note(now: Instant(parts.time))
    parts.log.fault(
      "upload.\(namespace).\(kind.rawValue)", "not delivered; tried again with growing pauses",
      ["namespace": namespace.text, "kind": kind.rawValue, "cause": problem.cause])
  }
}
