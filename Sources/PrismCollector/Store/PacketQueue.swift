import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol

/// Hands packets to the store in groups: those that arrive while one transaction runs are the next one. Holds packets that
/// came before their predecessor until that one is stored, or for `heldTime`.
actor PacketQueue {
  /// Of one group.
  static let groupPacketsMax = 64
  static let groupBytesMax = 16 * 1_048_576
  /// How long a packet waits for its predecessor.
  static let heldTime: Duration = .seconds(30)
  static let heldMax = 512
  /// Of one device, so that others find room.
  static let heldOfDeviceMax = 64

  typealias Answer = Result<PacketOutcome, CollectorRefusal>

  private struct Entry {
    let number: Int
    var submission: PacketSubmission
    let answer: CheckedContinuation<Answer, Never>
    /// When it is held no longer; nil: it never was.
    var heldUntil: Duration?

    var context: PacketContext { submission.packet.delivery.context }
    var dependsOn: PacketID? { submission.packet.delivery.dependsOn }
    var stream: StreamID { StreamID(context) }
    var isPending: Bool { submission.packet.delivery.hasPendingPredecessor }
    var predecessor: RefusedPackets.Key? { dependsOn.map { .init(stream: stream, packet: $0) } }
    /// Its part of the memory of all packets.
    var leasedBytes: Int { submission.packet.lease?.bytesTaken ?? bytes }
    var bytes: Int { submission.packet.payloads.reduce(submission.packet.bytes.count) { $0 + $1.count } }
  }

  private struct Held {
    var entry: Entry
    let timer: Task<Void, Never>
  }

  private let store: any PacketStore
  private let time: any TimeSource
  /// The most that held packets may take of the memory of all packets: the others must find room.
  private let heldBytesMax: Int
  private var waiting: [Entry] = []
  private var held: [Int: Held] = [:]
  private var refused = RefusedPackets()
  private var lastNumber = 0
  private var isRunning = false
  private var isClosed = false

  init(store: any PacketStore, time: any TimeSource, heldBytesMax: Int = 32 * 1_048_576) {
    (self.store, self.time, self.heldBytesMax) = (store, time, heldBytesMax)
  }

  var heldCount: Int { held.count }

  /// Returns once the packet is at rest, or is not taken.
  func take(_ packet: OpenedPacket) async -> Answer {
    await withCheckedContinuation { continuation in
      lastNumber += 1
      offer(Entry(number: lastNumber, submission: PacketSubmission(packet: packet), answer: continuation))
    }
  }

  /// A packet was refused for good: those that wait for it are refused with that reason, now and from now on.
  func refuse(_ packet: PacketID, of stream: StreamID) {
    refused.insert(.init(stream: stream, packet: packet))
    for entry in takeHeld(after: packet, of: stream) {
      entry.answer.resume(returning: .failure(Self.neverComes(packet)))
    }
  }

  /// A packet was refused for good. Headers that can't be read name no packet.
  func refuse(packetOf request: HTTPRequest, _ kind: RowKind) {
    guard let headers = try? PacketHeaders(kind: kind, { request.headers($0) }) else { return }
    refuse(headers.packetID, of: StreamID(device: headers.deviceID, namespace: headers.namespace, kind: kind))
  }

  /// Refuses packets that are held, now and from now on, so that a stop does not wait for them.
  func close() {
    isClosed = true
    for (_, held) in held {
      held.timer.cancel()
      held.entry.answer.resume(returning: .failure(Self.stopping))
    }
    held = [:]
  }

  private func offer(_ entry: Entry) {
    waiting.append(entry)
    guard !isRunning else { return }
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
  private func nextGroup() -> [Entry] {
    var (count, bytes) = (0, 0)
    while count < waiting.count, count < Self.groupPacketsMax, count == 0 || bytes < Self.groupBytesMax {
      bytes += waiting[count].bytes
      count += 1
    }
    let group = Array(waiting.prefix(count))
    waiting.removeFirst(count)
    return Self.sorted(group)
  }

  private static func sorted(_ group: [Entry]) -> [Entry] {
    guard group.count > 1 else { return group }
    return Dictionary(grouping: group) { StreamID($0.context) }.sorted { $0.key < $1.key }.flatMap { inOrder($0.value) }
  }

  /// Each behind its predecessor where that is in the group, else in the order of arrival.
  private static func inOrder(_ entries: [Entry]) -> [Entry] {
    var (rest, ordered) = (entries, [Entry]())
    while !rest.isEmpty {
      let ids = Set(rest.map(\.context.packetID))
      let index = rest.firstIndex { $0.dependsOn.map { !ids.contains($0) } ?? true } ?? 0
      ordered.append(rest.remove(at: index))
    }
    return ordered
  }

  private func take(_ group: [Entry]) async {
    do throws(StoreFailure) {
      let outcomes = try await store.take(group.map(\.submission))
      for (entry, outcome) in zip(group, outcomes) { settle(entry, outcome) }
    } catch {
      switch error {
      case .unavailable(let cause):
        for entry in group { entry.answer.resume(returning: .failure(Self.unavailable(cause))) }
      case .rejected(let cause) where group.count == 1:
        group[0].answer.resume(returning: .failure(CollectorRefusal(422, "the store can't hold this packet: \(cause)")))
      case .rejected: for entry in group { await take([entry]) }
      }
    }
  }

  private func settle(_ entry: Entry, _ outcome: PacketOutcome) {
    // Only its predecessor tells whether a packet is too old.
    guard outcome == .predecessorMissing || outcome == .tooOld && entry.isPending else {
      entry.answer.resume(returning: .success(outcome))
      if outcome == .tooOld { return refuse(entry.context.packetID, of: entry.stream) }
      refused.remove(.init(stream: entry.stream, packet: entry.context.packetID))
      return release(after: entry.context)
    }
    if let refusal = hold(entry) { entry.answer.resume(returning: .failure(refusal)) }
  }

  // MARK: Held packets

  /// - Returns: why it can't be held.
  private func hold(_ entry: Entry) -> CollectorRefusal? {
    if isClosed { return Self.stopping }
    if let predecessor = entry.predecessor, refused.contains(predecessor) {
      return Self.neverComes(predecessor.packet)
    }
    guard entry.heldUntil != nil || hasRoom(for: entry) else { return Self.missing(entry) }
    var entry = entry
    let deadline = entry.heldUntil ?? time.uptime + Self.heldTime
    entry.heldUntil = deadline
    let number = entry.number
    let timer = timer(number, wakesAt: wakeTime(deadline))
    held[number] = Held(entry: entry, timer: timer)
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

  private func hasRoom(for entry: Entry) -> Bool {
    guard held.count < Self.heldMax else { return false }
    let ofDevice = held.values.count { $0.entry.context.deviceID == entry.context.deviceID }
    let bytes = held.values.reduce(entry.leasedBytes) { $0 + $1.entry.leasedBytes }
    return ofDevice < Self.heldOfDeviceMax && bytes <= heldBytesMax
  }

  /// Another process may have stored its predecessor; or it was held for long enough.
  private func wake(_ number: Int) {
    guard var entry = remove(number) else { return }
    if let heldUntil = entry.heldUntil, time.uptime >= heldUntil {
      guard !entry.isPending else { return entry.answer.resume(returning: .failure(Self.missing(entry))) }
      entry.submission.isLate = true
    }
    offer(entry)
  }

  private func release(after packet: PacketContext) {
    for entry in takeHeld(after: packet.packetID, of: StreamID(packet)) { offer(entry) }
  }

  private func takeHeld(after packet: PacketID, of stream: StreamID) -> [Entry] {
    guard !held.isEmpty else { return [] }
    let numbers = held.filter { $0.value.entry.dependsOn == packet && $0.value.entry.stream == stream }.keys.sorted()
    return numbers.compactMap { remove($0) }
  }

  private func remove(_ number: Int) -> Entry? {
    guard let held = held.removeValue(forKey: number) else { return nil }
    held.timer.cancel()
    return held.entry
  }

  // MARK: Refusals

  private static let stopping = CollectorRefusal(
    503, "the packet before this one is missing, and the collector stops; try again", retryAfterSeconds: 5)

  /// Its sender sends the one before it again; the answer gives a time only if there is no such packet to send.
  private static func missing(_ entry: Entry) -> CollectorRefusal {
    var refusal = CollectorRefusal(425, "the packet before this one is missing; send that one first")
    refusal.missing = entry.dependsOn
    if !entry.isPending { refusal.retryAfterSeconds = 5 }
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
