import PrismBase
import PrismConfig
import Synchronization

/// Knows which devices are revoked, and the generation of each one's key: read again when 2 s have passed, so that a command
/// counts within 5. Where they can't be read, those that were read last stay.
final class DeviceStandings: Sendable {
  private static let interval: Duration = .seconds(2)

  private struct State {
    var devices: [String: DeviceStanding]?
    var readAt: Duration?
    var reading: Task<Void, Never>?
  }

  private let store: DeviceStore
  private let time: any TimeSource
  private let log: Logger
  private let state = Mutex(State())

  init(_ store: DeviceStore, time: any TimeSource, log: Logger) {
    (self.store, self.time, self.log) = (store, time, log)
  }

  /// Never waits. - Returns: false if what is known is too old: ask `check`.
  /// - Throws: 403 for a revoked device.
  func checkNow(_ device: String) throws(CollectorRefusal) -> Bool {
    let now = time.uptime
    let isRevoked = state.withLock { state -> Bool? in
      guard let devices = state.devices, state.reading == nil, let readAt = state.readAt,
        now - readAt < Self.interval
      else { return nil }
      return devices[device]?.isRevoked ?? false
    }
    if isRevoked == true { throw CollectorRefusal.revokedDevice }
    return isRevoked != nil
  }

  /// - Throws: 403 for a revoked device, 503 while nothing is known.
  func check(_ device: String) async throws(CollectorRefusal) {
    if try await known()[device]?.isRevoked == true { throw CollectorRefusal.revokedDevice }
  }

  /// The generation of a device's key, as it was read last. Never waits.
  func generation(of device: String) -> Int { state.withLock { $0.devices?[device]?.generation ?? 0 } }

  /// The standings, at most 2 s old. - Throws: 503 while nothing is known.
  @discardableResult
  func known() async throws(CollectorRefusal) -> [String: DeviceStanding] {
    let now = time.uptime
    let reading = state.withLock { state in
      if state.readAt.map({ now - $0 >= Self.interval }) ?? true {
        state.readAt = now
        state.reading = Task { await read() }
      }
      return state.reading
    }
    await reading?.value
    guard let devices = state.withLock({ $0.devices }) else {
      throw CollectorRefusal(503, "the collector can't read which devices are revoked", retryAfterSeconds: 5)
    }
    return devices
  }

  private func read() async {
    do throws(StoreFailure) {
      took(try await store.standings())
      log.faultEnded("collector.revoked", "the revoked devices can be read again")
    } catch {
      took(nil)
      log.fault("collector.revoked", "the revoked devices can't be read", ["cause": error.description])
    }
  }

  /// - Parameter devices: nil: they can't be read.
  @inline(never)  // scripts/check-locks
  private func took(_ devices: [String: DeviceStanding]?) {
    state.withLock { state in
      if let devices { state.devices = devices }
      if state.devices == nil { state.readAt = nil }
      state.reading = nil
    }
  }
}

/// The checks of a packet's device, its rate and whether it is revoked, and what its packets say of it.
final class DeviceGate: Sendable {
  /// Where devices are enrolled and revoked.
  let store: DeviceStore
  let admission: DeviceAdmission
  let standings: DeviceStandings
  let facts: DeviceFacts
  let sample: TriggerSample
  /// The facts of the fleet began again at this start.
  private let isNew: Bool
  private let losses = Mutex<[String]>([])

  /// For the answer of `/healthz`.
  var warnings: [String] { losses.withLock { $0 } }

  init(
    _ database: FleetDatabase, isNew: Bool, _ limits: CollectorConfiguration.Limits, time: any TimeSource, log: Logger
  ) {
    (store, self.isNew) = (DeviceStore(database), isNew)
    (standings, facts) = (DeviceStandings(store, time: time, log: log), DeviceFacts(in: database, time: time, log: log))
    admission = DeviceAdmission(limits, time: time)
    sample = TriggerSample(database, time: time)
  }

  /// - Parameter devices: those that the store has packets of.
  func begin(devices: Int, _ log: Logger) {
    admission.begin(devices: devices)
    guard isNew, devices > 0 else { return }
    let cause = "\(FleetDatabase.fileName) was missing: revoked devices are let in; restore it from a backup"
    losses.withLock { $0 = [cause] }
    log.error("revocations, rollouts and states of crashes begin again", ["cause": cause, "devices": "\(devices)"])
  }

  /// Before the work for a packet, by the device that its headers name.
  func check(_ device: String) throws(CollectorRefusal) { try admission.check(device) }
}
