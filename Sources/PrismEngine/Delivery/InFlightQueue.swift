import PrismPacket
import PrismProtocol
import PrismStore

/// The claimed packets of one namespace and kind, in the order in which they leave.
struct InFlightQueue: Sendable {
  struct Entry: Sendable {
    var id: PacketID
    /// 0: unknown until its rows are read.
    var itemCount: Int
    /// Of this run of the daemon.
    var attempts = 0
    /// nil: under a clock of which is not known whether it was right.
    var claimedAt: ClaimTime?
    /// A byte of it may have left, in this run or an earlier one: it keeps its id and its rows until it settles.
    var mayHaveLeft: Bool
    /// The receiver may have taken it, though no attempt ended with its receipt.
    var mayBeTaken = false
    /// An answer to it could not be believed: it goes on a new connection.
    var needsNewConnection = false
    /// The receiver missed its predecessor: it goes again once that one has its receipt.
    var waitsForReceipt = false
    /// Of a packet that was split.
    var isHalf = false
    var lastAttempt = Attempt()
    /// It was refused in another encoding.
    var leavesInGzip = false
    var content: Content

    var claimed: ClaimedPacket? { if case .claimed(let packet) = content { packet } else { nil } }
    var isSending: Bool { if case .sending = content { true } else { false } }
    var isAccepted: Bool { if case .accepted = content { true } else { false } }
    var isCarried: Bool { if case .carried = content { true } else { false } }
    /// It has not left yet, or is to leave again.
    var isToLeave: Bool { !isSending && !isAccepted && !isCarried }
  }

  struct Attempt: Sendable {
    /// Packets before it that had no receipt when it began.
    var pendingCount = 0
    var bodyBytes = 0
    var format: BlockFormat?
    /// That it went to.
    var collector: CollectorAddress?
  }

  /// Where a packet is on its way from the store to the collector.
  enum Content: Sendable {
    /// In the store only.
    case stored
    case claimed(ClaimedPacket)
    case building
    case built(BuiltPacket)
    /// Its POST has not been answered. Its rows stay its own until it is answered.
    case sending
    /// It has its receipt, and a packet before it still waits for its own: they are settled in their order.
    case accepted(Disposition)
    /// It was written to a file, which a person carries to the collector. Its rows stay its own.
    case carried
  }

  var entries: [Entry] = []
  /// Decided and not committed yet; in order.
  private(set) var dispositions: [Disposition] = []
  private(set) var lastAccepted: PacketID?
  /// The sender of all of `entries`; nil before the first claim.
  private(set) var sender: StreamIdentity?
  /// `entries` are what the store has in flight.
  private(set) var isRecovered = false
  /// The last claim found that no more rows wait.
  var isExhausted = false
  private(set) var lastPacketBytes: Int?
  /// Of a packet that is claimed, where larger ones pass the rest of the budget.
  var claimBytesMax = Int.max
  /// The packet that waits for another budget, and the rest of it that it needs.
  var postponed: (id: PacketID, neededBytes: Int)?
  /// Packets go into files.
  var isCarrying = false

  /// The packet that may leave next; nil if all are on their way.
  var next: Entry? {
    guard isRecovered, let index = entries.firstIndex(where: \.isToLeave) else { return nil }
    return entries[index].waitsForReceipt && pendingCount(before: index) > 0 ? nil : entries[index]
  }
  var sendingBytes: Int { entries.reduce(0) { $0 + ($1.isSending ? $1.lastAttempt.bodyBytes : 0) } }
  var sendingCount: Int { entries.count { $0.isSending } }
  /// Packets behind those that are on their way.
  var aheadCount: Int { entries.count { $0.isToLeave } }
  var isBuilding: Bool { entries.contains { if case .building = $0.content { true } else { false } } }
  /// Packets whose rows are at hand, in order, that leave alike. Before a packet is on its way, only the next one is built,
  /// so that it leaves soon. No packet is built behind one that is being split.
  var nextToBuild: [Entry] {
    guard !isBuilding, !hasUncommittedSplit else { return [] }
    let isFirst = sendingCount == 0
    guard let first = isFirst ? next : entries.first(where: { $0.claimed != nil }) else { return [] }
    return (isFirst ? [first] : entries).filter { $0.claimed != nil && $0.leavesInGzip == first.leavesInGzip }
  }
  /// The store does not know yet of a report that waits while others go on.
  var setsBack: Bool {
    let held = entries.lazy.compactMap { if case .accepted(let disposition) = $0.content { disposition } else { nil } }
    return (dispositions + held).contains { if case .setBack = $0 { true } else { false } }
  }

  /// Halves of a split can be read only once the split is committed.
  var hasUncommittedSplit: Bool { dispositions.contains { if case .split = $0 { true } else { false } } }
  /// A packet was split to find the row that the receiver refuses.
  var isSplitting: Bool { entries.contains(where: \.isHalf) }
  /// Nothing is left to send, as far as the last claim saw.
  var isDone: Bool { entries.isEmpty && isExhausted }

  subscript(id: PacketID) -> Entry? { entries.first { $0.id == id } }

  /// The packet before `id`; nil for the first of the chain.
  func predecessor(of id: PacketID) -> PacketID? {
    guard let index = index(id), index > 0 else { return lastAccepted }
    return entries[index - 1].id
  }

  /// How many packets before `id` have no receipt. The receiver keeps the order: a receipt is one for all before it, too.
  func pendingCount(before id: PacketID) -> Int { index(id).map { pendingCount(before: $0) } ?? 0 }

  private func pendingCount(before index: Int) -> Int {
    entries[..<index].reversed().prefix { !$0.isAccepted }.count
  }

  /// Whether more rows are to be claimed now. - Parameter hasPosted: a packet was posted in this drain. - Parameter
  /// flowRestBytes: the rest of the budget on metered networks; nil: traffic costs nothing.
  func wantsMore(hasPosted: Bool, flowRestBytes: Int?) -> Bool {
    if entries.isEmpty || isCarryingOn { return true }
    // A collector that answers before the commit is done must not make the next build wait for the next commit.
    return (sendingCount > 0 || hasPosted && isBuilding)
      && ClaimPlan.wantsMore(ahead: aheadCount, lastPacketBytes: lastPacketBytes, flowRestBytes: flowRestBytes)
  }

  // MARK: The store

  /// Begins with what the store has in flight; all of it may have left. Everything known of packets that are on their
  /// way still, or have their receipts, stays.
  mutating func recover(_ inFlight: [PacketInFlight], lastAccepted: PacketID?, sender: StreamIdentity? = nil) {
    let known = Dictionary(uniqueKeysWithValues: entries.map { ($0.id, $0) })
    entries = inFlight.map {
      known[$0.id]
        ?? Entry(
          id: $0.id, itemCount: $0.itemCount, claimedAt: $0.claimed, mayHaveLeft: true, mayBeTaken: true,
          content: .stored)
    }
    self.lastAccepted = sender.map { $0.predecessor(lastAccepted) } ?? lastAccepted
    self.sender = sender
    isRecovered = true
  }

  /// Whether the next packets may be of `deviceID`: another device waits until the last packet of the one before settles.
  func mayClaim(as deviceID: String) -> Bool { entries.isEmpty || sender == nil || sender?.deviceID == deviceID }

  /// - Returns: what is to be stored with the claims that follow; nil: it is stored.
  mutating func claims(as deviceID: String) -> StreamIdentity? {
    guard sender?.deviceID != deviceID else { return nil }
    let isFirst = sender == nil
    let next = StreamIdentity(deviceID: deviceID, former: isFirst ? nil : lastAccepted ?? sender?.former)
    (sender, lastAccepted) = (next, isFirst ? lastAccepted : nil)
    return next
  }

  mutating func add(_ claimed: [ClaimedPacket], at uptime: Duration? = nil) {
    entries += claimed.map {
      Entry(
        id: $0.id, itemCount: $0.itemCount, claimedAt: uptime.map { .uptime($0) }, mayHaveLeft: false,
        content: .claimed($0))
    }
    if let last = claimed.last {
      lastPacketBytes = last.payloads.reduce(last.metas.count) { $0 + $1.count }
    }
  }

  mutating func committed(_ count: Int) { dispositions.removeFirst(count) }

  /// The store failed: what it has in flight must be read again. Decisions stay.
  mutating func lose() {
    entries.removeAll { !$0.mayHaveLeft && !$0.isSending }
    rest()
    (isRecovered, isExhausted) = (false, false)
  }

  /// The store has no packet `id`.
  mutating func drop(_ id: PacketID) {
    entries.removeAll { $0.id == id }
    settleFirst()
  }

  /// Nothing is sent for a while: the ids are enough.
  mutating func rest() {
    claimBytesMax = .max
    for index in entries.indices where entries[index].isToLeave {
      entries[index].content = .stored
    }
  }

  // MARK: Content

  mutating func fill(_ packet: ClaimedPacket) { set(packet.id, .claimed(packet), itemCount: packet.itemCount) }
  mutating func fill(_ packet: BuiltPacket) {
    set(packet.context.packetID, .built(packet), itemCount: packet.itemCount)
  }
  /// Its rows are read again before it is built.
  mutating func empty(_ id: PacketID) { set(id, .stored) }
  mutating func builds(_ ids: [PacketID]) { for id in ids { set(id, .building) } }

  private mutating func set(_ id: PacketID, _ content: Content, itemCount: Int? = nil) {
    guard let index = index(id), !entries[index].isAccepted else { return }
    entries[index].content = content
    entries[index].itemCount = itemCount ?? entries[index].itemCount
  }

  // MARK: On its way

  /// The packet is about to be sent: its bytes are good for one attempt.
  mutating func began(_ id: PacketID, _ attempt: Attempt = Attempt()) {
    guard let index = index(id) else { return }
    entries[index].attempts += 1
    entries[index].waitsForReceipt = false
    entries[index].lastAttempt = attempt
    entries[index].lastAttempt.pendingCount = pendingCount(before: index)
    entries[index].content = .sending
  }

  mutating func answered(_ id: PacketID, _ outcome: DeliveryOutcome) {
    change(id) {
      $0.content = .stored
      if outcome.mayHaveLeft { $0.mayHaveLeft = true }
      if outcome.leavesDoubt(bodyBytes: $0.lastAttempt.bodyBytes) { $0.mayBeTaken = true }
    }
  }

  /// The answer to the last attempt may be meant for another one.
  mutating func doubt(_ id: PacketID) { change(id) { $0.needsNewConnection = true } }

  /// The answer may come from a receiver that does not take its encoding.
  mutating func useGzip(_ id: PacketID) { change(id) { $0.leavesInGzip = true } }

  /// The receiver missed the packet before it.
  mutating func wait(_ id: PacketID) { change(id) { $0.waitsForReceipt = true } }

  private mutating func change(_ id: PacketID, _ change: (inout Entry) -> Void) {
    if let index = index(id) { change(&entries[index]) }
  }

  /// The packet is delivered, or its rows are dead letters. Receipts come in any order; the chain has one.
  mutating func settle(_ id: PacketID, _ disposition: Disposition) {
    guard let index = index(id) else { return }
    if case .delivered = disposition {
      entries[index].content = .accepted(disposition)
    } else {
      entries.remove(at: index)
      dispositions.append(disposition)
    }
    settleFirst()
  }

  private mutating func settleFirst() {
    while let first = entries.first, case .accepted(let disposition) = first.content {
      lastAccepted = first.id
      dispositions.append(disposition)
      entries.removeFirst()
    }
  }

  /// The halves take the place of their whole. After a refusal in gzip no other encoding is tried.
  mutating func split(_ id: PacketID, _ disposition: Disposition, first: PacketID, second: PacketID) {
    guard let index = index(id) else { return }
    let halves = [first, second].map {
      Entry(
        id: $0, itemCount: 0, claimedAt: entries[index].claimedAt, mayHaveLeft: false, isHalf: true,
        leavesInGzip: entries[index].isPlain, content: .stored)
    }
    entries.replaceSubrange(index...index, with: halves)
    dispositions.append(disposition)
  }

  /// Gives back the rows of all that can't have left, unless a packet behind them may have: half of a packet would else
  /// come after what was claimed later. Halves keep their rows: the search for the row that is refused goes on where it was.
  mutating func release() {
    let lastKept = entries.lastIndex { $0.mayHaveLeft || $0.isSending || $0.isAccepted || $0.isHalf }
    let released = entries[(lastKept.map { $0 + 1 } ?? 0)...]
    guard !released.isEmpty else { return }
    dispositions += released.map { .released($0.id) }
    entries.removeSubrange(released.indices)
    isExhausted = false
  }

  /// The receiver never had the packet: its rows go under another id.
  mutating func remake(_ id: PacketID) {
    guard let index = index(id) else { return }
    (entries[index].mayHaveLeft, entries[index].mayBeTaken, entries[index].isHalf) = (false, false, false)
    release()
  }

  /// The next packet waits for another network. Its rows are given back unless it may have left: then rows that are claimed
  /// behind it would only be given back again.
  mutating func hold(_ next: PacketID) {
    release()
    isExhausted = self.next?.id == next
  }

  func index(_ id: PacketID) -> Int? { entries.firstIndex { $0.id == id } }

  /// The next packet needs more than the rest of the budget. Its rows are given back, and half of them are claimed. One row
  /// waits for the next budget, and so does a packet that may have left; the rows behind it wait, too.
  /// - Parameter rawBytes: of the packet before compression.
  mutating func postpone(_ id: PacketID, _ neededBytes: Int, rawBytes: Int) {
    guard let entry = self[id] else { return }
    guard entry.canShrink else {
      (isExhausted, postponed) = (true, (id, neededBytes))
      return
    }
    claimBytesMax = max(1, rawBytes / 2)
    hold(id)
  }

  /// The rest of the budget that the next packet waits for; nil if it does not wait.
  var awaitedFlowBytes: Int? { postponed.flatMap { self[$0.id]?.isToLeave == true ? $0.neededBytes : nil } }
}

extension InFlightQueue.Entry {
  /// Its rows may go in smaller packets.
  var canShrink: Bool { itemCount > 1 && !mayHaveLeft }
}
