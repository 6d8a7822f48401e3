import PrismBase
import PrismConfig
import Synchronization

/// Decides whether a device may send now.
final class DeviceAdmission: Sendable {
  private struct State {
    var ramp: AdmissionRamp?
    var all: PacketBucket?
    var uses: [String: DeviceUse] = [:]
  }

  /// Devices that are counted; of more, those that sent longest ago begin again.
  private static let devicesMax = 200_000

  private let limits: CollectorConfiguration.Limits
  private let time: any TimeSource
  private let state: Mutex<State>

  init(_ limits: CollectorConfiguration.Limits, time: any TimeSource) {
    (self.limits, self.time) = (limits, time)
    state = Mutex(State(all: limits.packetsPerMinute.map { PacketBucket(perMinute: $0, now: time.uptime) }))
  }

  /// The collector starts. - Parameter devices: that it knows.
  func begin(devices: Int) {
    let ramp = AdmissionRamp(devices: devices, perSecond: limits.startDevicesPerSecond, now: time.uptime)
    state.withLock { $0.ramp = ramp }
  }

  /// Asked before a packet is decrypted: so it counts nothing, since anybody may name a device.
  /// - Throws: 429 with the time after which the device may ask again.
  func check(_ device: String) throws(CollectorRefusal) {
    let now = time.uptime
    let (turn, all, own, full) = state.withLock { state in
      (
        state.ramp?.wait(device, now: now) ?? .zero,
        state.all?.wait(now: now) ?? .zero,
        state.uses[device]?.bucket?.wait(now: now) ?? .zero,
        state.uses[device]?.overdraft(now: now)
      )
    }
    if turn > .zero {
      throw CollectorRefusal(
        429, "the collector has just started, and lets devices in one after the other", retryAfter: turn)
    }
    if all > .zero {
      throw CollectorRefusal(429, "all devices together send more than the collector is to take", retryAfter: all)
    }
    if own > .zero {
      throw CollectorRefusal(429, "the device has sent as many packets as it may in a minute", retryAfter: own)
    }
    if let full { throw full.refusal }
  }

  /// Counts a packet that its decryption proved to be of the device.
  func count(_ device: String) {
    change(device) { state, now in
      state.all?.take(now: now)
      state.uses[device]?.take(now: now)
    }
  }

  /// A device used a limit of its day up: until that ends it gets the answer without work for its packets.
  func note(_ overdraft: Overdraft) {
    guard overdraft.limit != .reports else { return }
    change(overdraft.name) { state, now in state.uses[overdraft.name]?.full = (overdraft, now + overdraft.wait) }
  }

  private func change(_ device: String, _ body: (inout State, _ now: Duration) -> Void) {
    let now = time.uptime
    state.withLock { state in
      if state.uses[device] == nil {
        if state.uses.count >= Self.devicesMax { Self.dropOldest(&state.uses) }
        state.uses[device] = DeviceUse(limits, now: now)
      }
      body(&state, now)
    }
  }

  /// Devices that wait for the end of their day.
  var limitedCount: Int {
    let now = time.uptime
    return state.withLock { $0.uses.values.count { $0.overdraft(now: now) != nil } }
  }

  /// Half of them, so that it happens seldom.
  private static func dropOldest(_ uses: inout [String: DeviceUse]) {
    let times = uses.values.map(\.lastUsed).sorted()
    let middle = times[times.count / 2]
    uses = uses.filter { $0.value.lastUsed > middle }
  }
}

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

  /// From 0 to 1.
  private static func place(_ device: String) -> Double {
    Double(StableHash.of(Array(device.utf8)) >> 11) / Double(1 << 53)
  }
}

/// The use that one device made of its limits. Times are of the `uptime` clock, so a wrong wall clock changes nothing.
private struct DeviceUse {
  private(set) var bucket: PacketBucket?
  /// The limit of its day that it used up, and until when; nil: it did not, as far as is known here.
  var full: (overdraft: Overdraft, until: Duration)?
  private(set) var lastUsed: Duration

  init(_ limits: CollectorConfiguration.Limits, now: Duration) {
    (bucket, lastUsed) = (limits.devicePacketsPerMinute.map { PacketBucket(perMinute: $0, now: now) }, now)
  }

  /// The limit that it has used up, with the time that is left of its day.
  func overdraft(now: Duration) -> Overdraft? {
    guard let full, now < full.until else { return nil }
    var overdraft = full.overdraft
    overdraft.wait = full.until - now
    return overdraft
  }

  mutating func take(now: Duration) {
    bucket?.take(now: now)
    lastUsed = now
  }
}

/// A token bucket: it holds as many packets as are allowed in a minute, and fills up within a minute.
private struct PacketBucket {
  private let limit: Double
  private var packets: Double
  private var filledAt: Duration

  init(perMinute limit: Int, now: Duration) {
    (self.limit, packets, filledAt) = (Double(limit), Double(limit), now)
  }

  /// How long until a packet may be taken; zero: now.
  func wait(now: Duration) -> Duration { max(.zero, .seconds((1 - filled(now)) * 60 / limit)) }

  mutating func take(now: Duration) { (packets, filledAt) = (filled(now) - 1, now) }

  private func filled(_ now: Duration) -> Double {
    min(limit, packets + (now - filledAt) / .seconds(60) * limit)
  }
}
