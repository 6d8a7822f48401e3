import PrismPacket

/// The receiver of a namespace's packets of one kind, as they got to know it.
struct KnownReceiver: Sendable {
  /// nil: the namespace has had no collector yet.
  var address: CollectorAddress?
  /// Announced last.
  private(set) var features = ReceiverFeatures()
  private(set) var window = SendWindow()
  private var encodings = EncodingTrust()

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
      encodings.accepted(entry, now: now)
      window.open(most: most(configured), outcome.line, bodyBytes: entry.lastAttempt.bodyBytes, now: now)
    // Another one may have answered, which takes less.
    case .misconfigured: features = ReceiverFeatures()
    default: break
    }
  }

  mutating func refused(dictionaryID: UInt32?) { features.refusedDictionaryID = dictionaryID }

  mutating func shrinkWindow() { window.shrink() }

  /// Packets go over another network from now on. - Parameter sending: those that are on their way.
  mutating func networkChanged(sending: Int) { window.networkChanged(sending: sending) }

  /// All encodings that it announces are tried again.
  mutating func configurationChanged() { encodings = EncodingTrust() }
}
