import PrismProtocol
import PrismStore

/// The claimed packets of one namespace and kind, in the order in which they leave. Only its drain works with it.
struct PacketLine: Sendable {
  struct Entry: Sendable {
    var id: PacketID
    /// 0: unknown until its rows are read.
    var itemCount: Int
    /// Of this run of the daemon.
    var attempts = 0
    /// Frozen: a byte of it may have left, in this run or an earlier one.
    var mayHaveLeft: Bool
    /// An answer to it could not be believed: it goes on a new connection.
    var needsNewConnection = false
    var content: Content
  }

  enum Content: Sendable {
    /// In the store only.
    case stored
    case claimed(ClaimedPacket)
    case built(BuiltPacket)
  }

  private(set) var entries: [Entry] = []
  /// Decided and not committed yet; in order.
  private(set) var settlements: [Settlement] = []
  /// When the first of `settlements` was decided, on the uptime clock.
  private(set) var uncommittedSince: Duration?
  private(set) var lastAccepted: PacketID?
  /// Of all of `entries`; nil before the first claim.
  private(set) var sender: LineSender?
  /// `entries` are what the store has in flight.
  private(set) var isRecovered = false
  /// The last claim found that nothing (more) waits.
  var isExhausted = false
  /// The head's rows were split, and its halves can be read only once that is committed.
  private(set) var mustCommit = false
  private(set) var lastPacketBytes: Int?
  /// Its POST has not been answered: whatever happens meanwhile, its rows stay its own.
  private var isHeadOnItsWay = false

  var head: Entry? { entries.first }
  /// Behind the head, with their rows at hand.
  var claimedAhead: [ClaimedPacket] {
    entries.dropFirst().compactMap { if case .claimed(let packet) = $0.content { packet } else { nil } }
  }
  /// Nothing is left to send, as far as the last claim saw.
  var isDone: Bool { entries.isEmpty && isExhausted }

  /// Begins with what the store has in flight; all of it may have left.
  mutating func recover(_ inFlight: [PacketInFlight], lastAccepted: PacketID?, sender: LineSender? = nil) {
    entries = inFlight.map { Entry(id: $0.id, itemCount: $0.itemCount, mayHaveLeft: true, content: .stored) }
    self.lastAccepted = sender.map { $0.forerunner(lastAccepted) } ?? lastAccepted
    self.sender = sender
    isRecovered = true
  }

  /// Whether the next packets may be of `deviceID`: another one waits until the last of the one before is settled.
  func mayClaim(as deviceID: String) -> Bool { entries.isEmpty || sender == nil || sender?.deviceID == deviceID }

  /// - Returns: what is to be kept with the claims that follow; nil: it is.
  mutating func claims(as deviceID: String) -> LineSender? {
    guard sender?.deviceID != deviceID else { return nil }
    let isFirst = sender == nil
    let next = LineSender(deviceID: deviceID, former: isFirst ? nil : lastAccepted ?? sender?.former)
    (sender, lastAccepted) = (next, isFirst ? lastAccepted : nil)
    return next
  }

  /// The store failed in between: what it has in flight must be read again. What was decided stays decided.
  mutating func lose() {
    entries = []
    (isRecovered, isExhausted, mustCommit) = (false, false, false)
  }

  mutating func add(_ claimed: [ClaimedPacket]) {
    entries += claimed.map {
      Entry(id: $0.id, itemCount: $0.itemCount, mayHaveLeft: false, content: .claimed($0))
    }
    if let last = claimed.last {
      lastPacketBytes = last.payloads.reduce(last.metas.count) { $0 + $1.count }
    }
  }

  mutating func fill(_ id: PacketID, _ content: Content) {
    guard let index = entries.firstIndex(where: { $0.id == id }) else { return }
    entries[index].content = content
    switch content {
    case .stored: break
    case .claimed(let packet): entries[index].itemCount = packet.itemCount
    case .built(let packet): entries[index].itemCount = packet.itemCount
    }
  }

  /// The head is about to be sent: whatever comes of it, its bytes are good for one attempt.
  mutating func began() {
    isHeadOnItsWay = true
    entries[0].attempts += 1
    entries[0].content = .stored
  }

  mutating func answered(mayHaveLeft: Bool) {
    isHeadOnItsWay = false
    if mayHaveLeft { entries[0].mayHaveLeft = true }
  }

  /// What came of the head's last attempt may be no answer to it.
  mutating func doubt() { entries[0].needsNewConnection = true }

  /// The head is done with.
  mutating func settle(_ settlement: Settlement, now: Duration) {
    let head = entries.removeFirst()
    decide(settlement, now: now)
    if case .delivered = settlement { lastAccepted = head.id }
  }

  mutating func split(_ settlement: Settlement, first: PacketID, second: PacketID, now: Duration) {
    let halves = [first, second].map { Entry(id: $0, itemCount: 0, mayHaveLeft: false, content: .stored) }
    entries.replaceSubrange(0..<1, with: halves)
    decide(settlement, now: now)
    mustCommit = true
  }

  /// The rows of all that can't have left wait again, as far as nothing that may have stands behind them: half of a packet
  /// would else come after what was claimed later.
  mutating func dissolve(now: Duration) {
    let lastKept = entries.indices.last { entries[$0].mayHaveLeft || $0 == 0 && isHeadOnItsWay }
    let dissolved = entries[(lastKept.map { $0 + 1 } ?? 0)...]
    guard !dissolved.isEmpty else { return }
    for entry in dissolved { decide(.dissolved(entry.id), now: now) }
    entries.removeSubrange(dissolved.indices)
    isExhausted = false
  }

  /// Nothing is sent for a while: the ids are enough.
  mutating func rest() {
    for index in entries.indices { entries[index].content = .stored }
  }

  /// The store no longer knows the packet.
  mutating func drop(_ id: PacketID) { entries.removeAll { $0.id == id } }

  /// The first `count` of `settlements` hold.
  mutating func committed(_ count: Int, now: Duration) {
    settlements.removeFirst(count)
    uncommittedSince = settlements.isEmpty ? nil : now
    mustCommit = false
  }

  private mutating func decide(_ settlement: Settlement, now: Duration) {
    settlements.append(settlement)
    uncommittedSince = uncommittedSince ?? now
  }
}
