import PrismProtocol

/// The check of the device that a packet proved to be of.
struct SenderCheck: Sendable {
  let devices: DeviceGate
  let device: String
  /// Bytes that the device is counted; nil for a packet that does not count.
  let bytes: Int?

  init(_ devices: DeviceGate, _ delivery: Delivery, bytes: Int?) {
    (self.devices, device, self.bytes) = (devices, delivery.context.deviceID, bytes)
  }

  /// Counts the packet. Never waits.
  /// - Returns: false: it is not known now whether the device is revoked; ask `finish`.
  /// - Throws: 403 for a revoked device.
  func begin() throws(CollectorRefusal) -> Bool {
    if let bytes { devices.admission.count(device, bytes: bytes) }
    return try devices.standings.checkNow(device)
  }

  /// - Throws: 403 for a revoked device, 503 while nothing is known.
  func finish() async throws(CollectorRefusal) { try await devices.standings.check(device) }
}
