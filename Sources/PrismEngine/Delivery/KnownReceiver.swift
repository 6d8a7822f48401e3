import PrismPacket

/// The receiver of a namespace's packets of one kind, as they got to know it.
struct KnownReceiver: Sendable {
  /// nil: the namespace has had no collector yet.
  var address: CollectorAddress?
  /// Announced last.
  private(set) var features = ReceiverFeatures()
  private(set) var window = SendWindow()
  /// Of packet ids, in milliseconds since 1970: its clock, where this side's is behind.
  private(set) var idTimeMin: Int64 = 0
  private var encodings = EncodingTrust()
  /// Reports that something on the way did not let through, since the drain began, or the last packet was taken.
  private var setBackCount = 0
  /// With more of them in a row it may let nothing through: then the queue waits.
  private static let setBackMax = 4

  /// Packets at a time. - Parameter configured: what the configuration allows.
  func most(_ configured: Int) -> Int { min(features.window, configured) }

  init(address: CollectorAddress? = nil) { self.address = address }

  func isGzipOnly(now: Duration) -> Bool { encodings.isGzipOnly(now: now) }

  /// - Parameter entry: as it was when the answer came. - Parameter now: on the uptime clock.
  mutating func answered(
    _ entry: InFlightQueue.Entry, _ outcome: DeliveryOutcome, configured: Int, now: Duration
  ) {
    if let announced = outcome.receiver { features = announced.after(features) }
    switch outcome.verdict {
    case .accepted:
      setBackCount = 0
      encodings.accepted(entry, now: now)
      window.open(most: most(configured), outcome.line, bodyBytes: entry.lastAttempt.bodyBytes, now: now)
    // Another one may have answered, which takes less.
    case .misconfigured: features = ReceiverFeatures()
    case .tooOld(_, let time?): idTimeMin = time
    default: break
    }
  }

  var maySetBack: Bool { setBackCount < Self.setBackMax }

  mutating func setBack() { setBackCount += 1 }

  mutating func drainBegan() { setBackCount = 0 }

  mutating func refused(dictionaryID: UInt32?) { features.refusedDictionaryID = dictionaryID }

  mutating func shrinkWindow() { window.shrink() }

  /// Packets go over another network from now on. - Parameter sending: those that are on their way.
  mutating func networkChanged(sending: Int) { window.networkChanged(sending: sending) }

  /// All encodings that it announces are tried again.
  mutating func configurationChanged() { encodings = EncodingTrust() }
}

/// Notices a receiver that announces an encoding and refuses each packet in it: then packets go in gzip for a while, instead of
/// twice each.
struct EncodingTrust: Sendable, Equatable {
  static let refusalsMax = 3
  static let pause: Duration = .seconds(3600)

  /// Packets in a row that were refused in their encoding, and taken in gzip.
  private var refusals = 0
  /// On the uptime clock; nil: packets go in the encoding that the receiver announces.
  private var gzipUntil: Duration?

  func isGzipOnly(now: Duration) -> Bool { gzipUntil.map { now < $0 } ?? false }

  /// A packet was taken. - Parameter entry: as it was when the answer came.
  mutating func accepted(_ entry: InFlightQueue.Entry, now: Duration) {
    if !entry.isPlain {
      refusals = 0
      return
    }
    // Halves leave in gzip because a report was refused.
    guard entry.leavesInGzip, !entry.isHalf else { return }
    refusals += 1
    guard refusals >= Self.refusalsMax else { return }
    (refusals, gzipUntil) = (0, now + Self.pause)
  }
}

// The encodings that a receiver takes, and the number of packets at a time.
extension Delivery {
  func seal(of entry: InFlightQueue.Entry, _ now: Conditions) -> PacketSeal? {
    let isGzipOnly = entry.leavesInGzip || receiver.isGzipOnly(now: now.instant.uptime)
    return now.seal?.from(queue.sender, to: isGzipOnly ? nil : receiver.features)
  }

  /// Several packets of a namespace may be on their way at a time where its receiver announced that, and knows it. No packet
  /// is sent behind one that is being split.
  private func packetsMax(_ now: Conditions) -> Int {
    guard queue.lastAccepted != nil, retry.isClean, !now.isProbe, !queue.isSplitting else { return 1 }
    return min(receiver.window.packets, receiver.most(now.windowMax))
  }

  /// The first may always go: those behind it that are on their way wait for it.
  func hasRoom(for next: InFlightQueue.Entry, _ now: Conditions) -> Bool {
    queue.sendingCount < packetsMax(now) || queue.entries.first?.id == next.id
  }
}

extension InFlightQueue.Entry {
  /// The last attempt left as rows in gzip, which every receiver takes; true before the first.
  var isPlain: Bool { lastAttempt.format.map { $0.encoding == .gzip && $0.form == .rows } ?? true }

  /// - Parameter maySetBack: its report may wait while others go on.
  func attempt(_ now: Instant, maySetBack: Bool) -> DeliveryDecision.Attempt {
    DeliveryDecision.Attempt(
      packet: id, itemCount: itemCount, attempts: attempts, isPending: lastAttempt.pendingCount > 0,
      mayNotBeTaken: !isPlain && !leavesInGzip, hasDictionary: lastAttempt.format?.dictionaryID != nil,
      mayBeTaken: mayBeTaken, maySetBack: maySetBack,
      claimedAt: claimedAt, uptime: now.uptime, now: now.unixMilliseconds)
  }
}
