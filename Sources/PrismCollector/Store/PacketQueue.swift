import PrismBase
import PrismProtocol

/// Hands packets to the store in groups: those that arrive while one transaction runs are the next one. Holds packets that
/// came before their predecessor until that one is stored, or for `heldTime`.
actor PacketQueue {
  /// Of one group.
  static let groupPacketsMax = 64
  static let groupBytesMax = 16 * 1_048_576
  /// How long a packet waits for its predecessor.
  static let heldTime: Duration = .seconds(30)
  static let heldMax = 256
  /// Of one device, so that others find room.
  static let heldOfDeviceMax = 32

  typealias Answer = Result<PacketOutcome, CollectorRefusal>

  private struct Entry {
    let number: Int
    var submission: PacketSubmission
    let answer: CheckedContinuation<Answer, Never>

    var context: PacketContext { submission.packet.delivery.context }
    var dependsOn: PacketID? { submission.packet.delivery.dependsOn }
    var bytes: Int { submission.packet.payloads.reduce(submission.packet.bytes.count) { $0 + $1.count } }
  }

  private struct Held {
    var entry: Entry
    let timer: Task<Void, Never>
  }

  private let store: any PacketStore
  private let time: any TimeSource
  private var waiting: [Entry] = []
  private var held: [Int: Held] = [:]
  private var lastNumber = 0
  private var isRunning = false
  private var isClosed = false

  init(store: any PacketStore, time: any TimeSource) { (self.store, self.time) = (store, time) }

  var heldCount: Int { held.count }

  /// Returns once the packet is at rest, or is not taken.
  func take(_ packet: OpenedPacket) async -> Answer {
    await withCheckedContinuation { continuation in
      lastNumber += 1
      offer(Entry(number: lastNumber, submission: PacketSubmission(packet: packet), answer: continuation))
    }
  }

  /// Refuses packets that are held, now and from now on, so that a stop does not wait for them.
  func close() {
    isClosed = true
    for (_, held) in held {
      held.timer.cancel()
      held.entry.answer.resume(returning: .failure(Self.predecessorMissing))
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
    guard outcome == .predecessorMissing else {
      entry.answer.resume(returning: .success(outcome))
      return release(after: entry.context)
    }
    hold(entry)
  }

  // MARK: Held packets

  private func hold(_ entry: Entry) {
    let ofDevice = held.values.count { $0.entry.context.deviceID == entry.context.deviceID }
    guard !isClosed, held.count < Self.heldMax, ofDevice < Self.heldOfDeviceMax else {
      return entry.answer.resume(returning: .failure(Self.predecessorMissing))
    }
    let (time, number) = (time, entry.number)
    let (interval, deadline) = (store.recheckInterval, time.uptime + Self.heldTime)
    let timer = Task {
      // Cancelled: its predecessor came, or the collector stops.
      while let interval, time.uptime + interval < deadline {
        do { try await time.sleep(for: interval) } catch { return }
        self.recheck(number)
      }
      do { try await time.sleep(until: deadline) } catch { return }
      self.giveUp(number)
    }
    held[number] = Held(entry: entry, timer: timer)
  }

  private func recheck(_ number: Int) {
    guard let entry = held[number]?.entry else { return }
    let submission = entry.submission
    Task {
      guard let outcome = try? await store.take([submission]).first, outcome != .predecessorMissing else { return }
      if remove(number) != nil { settle(entry, outcome) }
    }
  }

  private func giveUp(_ number: Int) {
    guard var entry = remove(number) else { return }
    entry.submission.isLate = true
    offer(entry)
  }

  private func release(after packet: PacketContext) {
    guard !held.isEmpty else { return }
    let stream = StreamID(packet)
    let released = held.filter { _, held in
      held.entry.dependsOn == packet.packetID && StreamID(held.entry.context) == stream
    }
    for number in released.keys.sorted() { remove(number).map { offer($0) } }
  }

  private func remove(_ number: Int) -> Entry? {
    guard let held = held.removeValue(forKey: number) else { return nil }
    held.timer.cancel()
    return held.entry
  }

  static let predecessorMissing = CollectorRefusal(
    503, "the packet before this one is missing; try again", retryAfterSeconds: 5)

  private static func unavailable(_ cause: String) -> CollectorRefusal {
    CollectorRefusal(503, "the collector's store takes no packets now: \(cause)", retryAfterSeconds: 5)
  }
}
