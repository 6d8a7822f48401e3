import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import Synchronization

/// Hands packets to the store in groups: those that arrive while one transaction runs are the next one. Holds packets that
/// came before their predecessor until that one is stored, or for `heldTime`.
actor PacketQueue {
  /// Of one group.
  static let groupPacketsMax = 64
  static let groupBytesMax = 16 * 1_048_576
  /// How long a packet waits for its predecessor.
  static let heldTime: Duration = .seconds(30)

  typealias Answer = Result<PacketOutcome, CollectorRefusal>

  private let store: any PacketStore
  private let time: any TimeSource
  private var waiting: [QueuedPacket] = []
  private var held: HeldPackets { didSet { heldCounted.store(held.count, ordering: .relaxed) } }
  private let heldCounted = Atomic(0)
  private var refused = RefusedPackets()
  private var lastNumber = 0
  private var isRunning = false
  private var isClosed = false

  /// - Parameter heldBytesMax: the most that held packets may take of the memory of all packets.
  init(store: any PacketStore, time: any TimeSource, heldBytesMax: Int = 32 * 1_048_576) {
    (self.store, self.time, held) = (store, time, HeldPackets(bytesMax: heldBytesMax))
  }

  /// For readers, whose threads let others pass: one that is in the actor would hold up devices.
  nonisolated var heldCount: Int { heldCounted.load(ordering: .relaxed) }

  /// Returns once the packet is at rest, or is not taken.
  ///
  /// Readers' tasks may call it too (the audit log, a changed record); they enter as devices do, and not on their own threads.
  nonisolated func take(_ packet: OpenedPacket) async -> Answer {
    await withTaskExecutorPreference(globalConcurrentExecutor) { await enter(packet) }
  }

  private func enter(_ packet: OpenedPacket) async -> Answer {
    await withCheckedContinuation { continuation in
      lastNumber += 1
      offer(QueuedPacket(number: lastNumber, submission: PacketSubmission(packet: packet), answer: continuation))
    }
  }

  /// A packet was refused for good: those that wait for it are refused with that reason, now and from now on.
  func refuse(_ packet: PacketKey) {
    refused.insert(packet)
    for follower in held.removeFollowers(of: packet) {
      follower.answer.resume(returning: .failure(Self.neverComes(packet.packet)))
    }
  }

  /// A packet was refused for good. Headers that can't be read name no packet.
  func refuse(packetOf request: HTTPRequest, _ kind: RowKind) {
    guard let headers = try? PacketHeaders(kind: kind, { request.headers($0) }) else { return }
    let stream = StreamID(device: headers.deviceID, namespace: headers.namespace, kind: kind)
    refuse(PacketKey(stream: stream, packet: headers.packetID))
  }

  /// Refuses packets that are held, now and from now on, so that a stop does not wait for them.
  func close() {
    isClosed = true
    for packet in held.removeAll() { packet.answer.resume(returning: .failure(Self.stopping)) }
  }

  /// With those that wait for it: the store takes a chain in one transaction.
  private func offer(_ packet: QueuedPacket) { offer([packet] + held.removeChain(behind: packet.key)) }

  /// The store still says whether it has the packet, or its predecessor after all.
  private func submission(_ packet: QueuedPacket) -> PacketSubmission {
    var submission = packet.submission
    submission.isPredecessorRefused = isPredecessorRefused(packet)
    return submission
  }

  private func offer(_ packets: [QueuedPacket]) {
    waiting += packets
    guard !waiting.isEmpty, !isRunning else { return }
    isRunning = true
    Task { await run() }
  }

  private func run() async {
    while !waiting.isEmpty {
      let group = nextGroup()
      await take(group)
    }
    isRunning = false
  }

  // MARK: Groups

  /// Those that came first, up to the limits, sorted by stream, so that two replicas never wait for each other's rows.
  private func nextGroup() -> [QueuedPacket] {
    var (count, bytes) = (0, 0)
    while count < waiting.count, count < Self.groupPacketsMax, count == 0 || bytes < Self.groupBytesMax {
      bytes += waiting[count].bytes
      count += 1
    }
    let group = Array(waiting.prefix(count))
    waiting.removeFirst(count)
    return Self.sorted(group)
  }

  private static func sorted(_ group: [QueuedPacket]) -> [QueuedPacket] {
    guard group.count > 1 else { return group }
    return Dictionary(grouping: group) { $0.key.stream }.sorted { $0.key < $1.key }.flatMap { inOrder($0.value) }
  }

  /// Each behind its predecessor where that is in the group, else in the order of arrival.
  private static func inOrder(_ packets: [QueuedPacket]) -> [QueuedPacket] {
    var (rest, ordered) = (packets, [QueuedPacket]())
    var ids = Set(rest.map(\.context.packetID))
    while !rest.isEmpty {
      let index = rest.firstIndex { $0.dependsOn.map { !ids.contains($0) } ?? true } ?? 0
      ordered.append(rest.remove(at: index))
      ids.remove(ordered[ordered.count - 1].context.packetID)
    }
    return ordered
  }

  private func take(_ group: [QueuedPacket]) async {
    do throws(StoreFailure) {
      let outcomes = try await store.take(group.map { submission($0) })
      for (packet, outcome) in zip(group, outcomes) { settle(packet, outcome) }
    } catch {
      switch error {
      case .unavailable(let cause):
        for packet in group { packet.answer.resume(returning: .failure(Self.unavailable(cause))) }
      case .rejected(let cause) where group.count == 1:
        group[0].answer.resume(returning: .failure(CollectorRefusal(422, "the store can't hold this packet: \(cause)")))
      case .rejected: for packet in group { await take([packet]) }
      }
    }
  }

  private func settle(_ packet: QueuedPacket, _ outcome: PacketOutcome) {
    guard outcome == .predecessorMissing || outcome == .tooOld && isUndecided(packet) else {
      packet.answer.resume(returning: .success(outcome))
      if outcome == .tooOld { return refuse(packet.key) }
      refused.remove(packet.key)
      return offer(held.removeChain(behind: packet.key))  // they came while it was stored
    }
    var packet = packet
    packet.isTooOld = outcome == .tooOld
    if let refusal = hold(packet) { packet.answer.resume(returning: .failure(refusal)) }
  }

  /// Only its predecessor tells whether the packet is too old, and it may come still; or it was refused, which says more.
  private func isUndecided(_ packet: QueuedPacket) -> Bool { packet.isPending || isPredecessorRefused(packet) }

  private func isPredecessorRefused(_ packet: QueuedPacket) -> Bool {
    packet.predecessor.map { refused.contains($0) } ?? false
  }

  // MARK: Held packets

  /// - Returns: why it can't be held.
  private func hold(_ packet: QueuedPacket) -> CollectorRefusal? {
    if isClosed { return Self.stopping }
    guard let predecessor = packet.predecessor else { return Self.missing(packet) }
    if refused.contains(predecessor) { return Self.neverComes(predecessor.packet) }
    guard packet.heldUntil != nil || held.hasRoom(for: packet) else { return Self.missing(packet) }
    var packet = packet
    let deadline = packet.heldUntil ?? time.uptime + Self.heldTime
    packet.heldUntil = deadline
    held.insert(packet, behind: predecessor, timer: timer(packet.number, wakesAt: wakeTime(deadline)))
    return nil
  }

  private func wakeTime(_ deadline: Duration) -> Duration {
    guard let interval = store.recheckInterval else { return deadline }
    return min(deadline, time.uptime + interval)
  }

  private func timer(_ number: Int, wakesAt: Duration) -> Task<Void, Never> {
    let time = time
    return Task {
      do { try await time.sleep(until: wakesAt) } catch { return }  // its predecessor came, or the collector stops
      self.wake(number)
    }
  }

  /// Another process may have stored its predecessor; or it was held for long enough.
  private func wake(_ number: Int) {
    guard var packet = held.remove(number) else { return }
    if let heldUntil = packet.heldUntil, time.uptime >= heldUntil {
      guard !packet.isPending else { return packet.answer.resume(returning: Self.answerAfterHold(packet)) }
      packet.submission.isLate = true
    }
    offer(packet)
  }

  /// A packet that is too old is not noted as refused: its predecessor may come still, and it with that one.
  private static func answerAfterHold(_ packet: QueuedPacket) -> Answer {
    packet.isTooOld ? .success(.tooOld) : .failure(missing(packet))
  }

  // MARK: Refusals

  private static let stopping = CollectorRefusal(
    503, "the packet before this one is missing, and the collector stops; try again", retryAfterSeconds: 5)

  /// Its sender sends the one before it again; the answer gives a time only if there is no such packet to send.
  private static func missing(_ packet: QueuedPacket) -> CollectorRefusal {
    var refusal = CollectorRefusal(425, "the packet before this one is missing; send that one first")
    refusal.missing = packet.dependsOn
    if !packet.isPending { refusal.retryAfterSeconds = 5 }
    return refusal
  }

  private static func neverComes(_ packet: PacketID) -> CollectorRefusal {
    var refusal = CollectorRefusal(409, "the packet before this one was refused; name the one that was accepted last")
    refusal.missing = packet
    return refusal
  }

  private static func unavailable(_ cause: String) -> CollectorRefusal {
    CollectorRefusal(503, "the collector's store takes no packets now: \(cause)", retryAfterSeconds: 5)
  }
}
