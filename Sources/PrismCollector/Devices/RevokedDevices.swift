import PrismBase

/// Knows which devices are revoked: read again when 2 s have passed, so that a command counts within 5. Where they can't be
/// read, those that were read last stay revoked.
actor RevokedDevices {
  private static let interval: Duration = .seconds(2)

  private let store: any DeviceStore
  private let time: any TimeSource
  private let log: Logger
  private var devices: Set<String>?
  private var readAt: Duration?
  private var reading: Task<Void, Never>?

  init(_ store: any DeviceStore, time: any TimeSource, log: Logger) {
    (self.store, self.time, self.log) = (store, time, log)
  }

  /// - Throws: 403 for a revoked device, 503 while nothing is known.
  func check(_ device: String) async throws(CollectorRefusal) {
    if readAt.map({ time.uptime - $0 >= Self.interval }) ?? true {
      readAt = time.uptime
      reading = Task { await read() }
    }
    await reading?.value
    guard let devices else {
      throw CollectorRefusal(503, "the collector can't read which devices are revoked", retryAfterSeconds: 5)
    }
    if devices.contains(device) {
      throw CollectorRefusal(403, "the device was revoked; `prism-collector device restore` takes that back")
    }
  }

  private func read() async {
    do throws(DeviceStoreFailure) {
      devices = try await store.revoked()
      log.faultEnded("collector.revoked", "the revoked devices can be read again")
    } catch {
      if devices == nil { readAt = nil }
      log.fault("collector.revoked", "the revoked devices can't be read", ["cause": error.description])
    }
    reading = nil
  }
}
