/// The packets and bytes that one device has used of its limits. Times are of the `uptime` clock, so a wrong wall clock
/// changes nothing.
struct DeviceUse: Sendable, Equatable {
  private static let day: Duration = .seconds(86_400)

  private var bucket: PacketBucket?
  private var dayBegan: Duration
  private var dayBytes = 0
  private(set) var lastUsed: Duration

  init(_ limits: DeviceLimits, now: Duration) {
    bucket = limits.packetsPerMinute.map { PacketBucket(perMinute: $0, now: now) }
    (dayBegan, lastUsed) = (now, now)
  }

  /// How long until a packet may be taken; zero: now.
  func wait(_ limits: DeviceLimits, now: Duration) -> Duration {
    var wait = Duration.zero
    if let limit = limits.packetsPerMinute, let bucket { wait = bucket.wait(perMinute: limit, now: now) }
    if let limit = limits.bytesPerDay, now - dayBegan < Self.day, dayBytes >= limit {
      wait = max(wait, dayBegan + Self.day - now)
    }
    return wait
  }

  mutating func take(bytes: Int, _ limits: DeviceLimits, now: Duration) {
    if let limit = limits.packetsPerMinute { bucket?.take(perMinute: limit, now: now) }
    if now - dayBegan >= Self.day { (dayBegan, dayBytes) = (now, 0) }
    dayBytes += bytes
    lastUsed = now
  }
}
