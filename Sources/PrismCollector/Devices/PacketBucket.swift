/// A token bucket: it holds as many packets as are allowed in a minute, and fills up within a minute.
struct PacketBucket: Sendable, Equatable {
  private var packets: Double
  private var filledAt: Duration

  init(perMinute limit: Int, now: Duration) { (packets, filledAt) = (Double(limit), now) }

  /// How long until a packet may be taken; zero: now.
  func wait(perMinute limit: Int, now: Duration) -> Duration {
    let missing = 1 - filled(limit, now)
    return missing <= 0 ? .zero : .seconds(missing * 60 / Double(limit))
  }

  mutating func take(perMinute limit: Int, now: Duration) {
    (packets, filledAt) = (filled(limit, now) - 1, now)
  }

  private func filled(_ limit: Int, _ now: Duration) -> Double {
    min(Double(limit), packets + (now - filledAt) / .seconds(60) * Double(limit))
  }
}
