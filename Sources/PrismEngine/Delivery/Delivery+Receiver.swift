import PrismConfig
import PrismPacket
import PrismProtocol

// The encodings that a receiver takes, and the number of packets at a time.
extension Delivery {
  func seal(of entry: InFlightQueue.Entry, _ now: Conditions) -> PacketSeal? {
    let isGzipOnly = entry.leavesInGzip || encodings.isGzipOnly(now: now.instant.uptime)
    return now.seal?.from(queue.sender, to: isGzipOnly ? nil : receiver)
  }

  /// Several packets of a namespace may be on their way at a time where its receiver announced that, and knows it. No packet
  /// is sent behind one that is being split.
  private func packetsMax(_ now: Conditions) -> Int {
    guard queue.lastAccepted != nil, retry.isClean, !now.isProbe, !queue.isSplitting else { return 1 }
    return min(window.packets, most(now))
  }

  func most(_ now: Conditions) -> Int { min(receiver.window, now.windowMax) }

  /// The first may always go: those behind it that are on their way wait for it.
  func hasRoom(for next: InFlightQueue.Entry, _ now: Conditions) -> Bool {
    queue.sendingCount < packetsMax(now) || queue.entries.first?.id == next.id
  }
}

extension InFlightQueue.Entry {
  /// Of the last attempt; gzip before the first.
  var encoding: PacketEncoding { format?.encoding ?? .gzip }

  /// The last attempt. - Parameter now: milliseconds since 1970.
  func attempt(now: Int64) -> DeliveryDecision.Attempt {
    DeliveryDecision.Attempt(
      packet: id, itemCount: itemCount, attempts: attempts, isPending: pendingAtAttempt > 0,
      mayNotBeTaken: encoding != .gzip && !leavesInGzip, hasDictionary: format?.dictionaryID != nil, now: now)
  }
}
