import PrismBase
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
  /// A sender asks again after this time at the latest, so that a mended limit is noticed.
  private static let retryMax: Duration = .seconds(3600)

  private let limits: DeviceLimits
  private let time: any TimeSource
  private let state: Mutex<State>

  init(_ limits: DeviceLimits, time: any TimeSource) {
    (self.limits, self.time) = (limits, time)
    state = Mutex(State(all: limits.allPacketsPerMinute.map { PacketBucket(perMinute: $0, now: time.uptime) }))
  }

  /// The collector starts. - Parameter devices: that it knows.
  func begin(devices: Int) {
    let ramp = AdmissionRamp(devices: devices, perSecond: limits.admittedPerSecond, now: time.uptime)
    state.withLock { $0.ramp = ramp }
  }

  /// Asked before a packet is decrypted: so it counts nothing, since anybody may name a device.
  /// - Throws: 429 with the time after which the device may ask again.
  func check(_ device: String) throws(CollectorRefusal) {
    let now = time.uptime
    let (turn, all, own) = state.withLock { state in
      (
        state.ramp?.wait(device, now: now) ?? .zero,
        limits.allPacketsPerMinute.flatMap { state.all?.wait(perMinute: $0, now: now) } ?? .zero,
        state.uses[device]?.wait(limits, now: now) ?? .zero
      )
    }
    if turn > .zero {
      throw Self.refusal("the collector has just started, and lets devices in one after the other", turn)
    }
    if all > .zero { throw Self.refusal("all devices together send more than the collector is to take", all) }
    if own > .zero { throw Self.refusal("the device has sent as much as it may", own) }
  }

  /// Counts a packet that its decryption proved to be of the device.
  func count(_ device: String, bytes: Int) {
    guard !limits.areNone else { return }
    let now = time.uptime
    state.withLock { state in
      if let limit = limits.allPacketsPerMinute { state.all?.take(perMinute: limit, now: now) }
      if state.uses[device] == nil && state.uses.count >= Self.devicesMax { Self.dropOldest(&state.uses) }
      state.uses[device, default: DeviceUse(limits, now: now)].take(bytes: bytes, limits, now: now)
    }
  }

  /// Half of them, so that it happens seldom.
  private static func dropOldest(_ uses: inout [String: DeviceUse]) {
    let times = uses.values.map(\.lastUsed).sorted()
    let middle = times[times.count / 2]
    uses = uses.filter { $0.value.lastUsed > middle }
  }

  /// Jitter of a quarter: many that get the same time come back at different ones.
  private static func refusal(_ message: String, _ wait: Duration) -> CollectorRefusal {
    let seconds = min(wait, retryMax) / .seconds(1)
    let spread = seconds * (1 + Double.random(in: 0...0.25))
    return CollectorRefusal(429, message, retryAfterSeconds: max(1, Int(spread.rounded(.up))))
  }
}
