/// Lets a fleet in gradually: all devices that waited for a collector would come at once. A device's place in the line
/// is a hash of its id, so it keeps the place when it asks again, and at every replica.
struct AdmissionRamp: Sendable, Equatable {
  private let began: Duration
  private let length: Duration

  /// - Parameters:
  ///   - devices: that are known.
  ///   - now: of the `uptime` clock.
  init(devices: Int, perSecond: Int, now: Duration) {
    began = now
    length = devices <= perSecond ? .zero : .seconds(Double(devices) / Double(max(1, perSecond)))
  }

  /// How long until the device may send; zero: now.
  func wait(_ device: String, now: Duration) -> Duration {
    guard now - began < length else { return .zero }
    return max(.zero, began + length * Self.place(device) - now)
  }

  /// From 0 to 1: FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv), mixed as in SplitMix64
  /// (https://prng.di.unimi.it/splitmix64.c), since FNV changes few bits between ids that differ at their end.
  private static func place(_ device: String) -> Double {
    let hash = device.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01B3 }
    let first = (hash ^ hash >> 30) &* 0xBF58_476D_1CE4_E5B9
    let mixed = (first ^ first >> 27) &* 0x94D0_49BB_1331_11EB
    return Double((mixed ^ mixed >> 31) >> 11) / Double(1 << 53)
  }
}
