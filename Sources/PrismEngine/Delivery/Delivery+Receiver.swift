import PrismConfig
import PrismPacket
import PrismProtocol

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

  /// The last attempt.
  func attempt(_ now: Instant) -> DeliveryDecision.Attempt {
    DeliveryDecision.Attempt(
      packet: id, itemCount: itemCount, attempts: attempts, isPending: lastAttempt.pendingCount > 0,
      mayNotBeTaken: !isPlain && !leavesInGzip, hasDictionary: lastAttempt.format?.dictionaryID != nil,
      age: claimedAt.map { now.uptime - $0 }, now: now.unixMilliseconds)
  }
}
