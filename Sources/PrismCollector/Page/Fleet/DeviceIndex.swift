import PrismBase
import Synchronization

/// The list of all devices, as it was read last. A small fleet is read for each question. The list of a large one takes longer to
/// read, so it may be a minute old, and is read again behind the answer.
final class DeviceIndex: Sendable {
  typealias Read = @Sendable () async throws(CollectorRefusal) -> [DeviceSummary]

  /// Devices of a small fleet.
  static let smallMax = 2_000
  private static let (freshAge, ageMax): (Duration, Duration) = (.seconds(2), .seconds(60))

  private struct State {
    var devices: [DeviceSummary] = []
    /// By the time since the start; nil: it has to be read.
    var readAt: Duration?
    var isReading = false
    /// Counts what made the list wrong.
    var changes = 0
  }

  private let state = Mutex(State())

  /// Something changed here that the next answer must show.
  func change() {
    state.withLock { state in
      state.changes += 1
      state.readAt = nil
    }
  }

  /// - Parameter now: the time since the start.
  func devices(now: Duration, _ read: @escaping Read) async throws(CollectorRefusal) -> [DeviceSummary] {
    let (known, isDue) = known(now)
    guard let known else { return try await refreshed(now, read) }
    if isDue { Task { _ = try? await refreshed(now, read) } }  // the list of before stays where it can't be read
    return known
  }

  private func known(_ now: Duration) -> (devices: [DeviceSummary]?, isDue: Bool) {
    state.withLock { state in
      guard state.devices.count > Self.smallMax, let readAt = state.readAt, now - readAt < Self.ageMax else {
        return (nil, false)
      }
      let isDue = now - readAt >= Self.freshAge && !state.isReading
      if isDue { state.isReading = true }
      return (state.devices, isDue)
    }
  }

  private func refreshed(_ now: Duration, _ read: Read) async throws(CollectorRefusal) -> [DeviceSummary] {
    let before = state.withLock { $0.changes }
    defer { state.withLock { $0.isReading = false } }
    let devices = try await read()
    state.withLock { state in
      guard state.changes == before else { return }
      (state.devices, state.readAt) = (devices, now)
    }
    return devices
  }
}
