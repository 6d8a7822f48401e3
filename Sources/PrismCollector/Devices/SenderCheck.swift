import PrismPacket
import PrismProtocol

/// The check of the device that a packet proved to be of.
struct SenderCheck: Sendable {
  let devices: DeviceGate
  let device: String
  /// Of the packet's body; nil for a packet that does not count.
  private let bytes: Int?
  /// The cost of a row beside its text: its place, its times and its ids.
  private static let rowBytes = 128

  init(_ devices: DeviceGate, _ delivery: Delivery, bytes: Int?) {
    (self.devices, device, self.bytes) = (devices, delivery.context.deviceID, bytes)
  }

  /// Counts the packet: its rows and its unpacked bytes, or its body where that is larger. Never waits.
  /// - Returns: false: it is not known now whether the device is revoked; ask `finish`.
  /// - Throws: 403 for a revoked device.
  func begin(_ packet: PackedPacket, rows: Int) throws(CollectorRefusal) -> Bool {
    if let bytes {
      let unpacked = packet.metaBytes + packet.payloadBytes + rows * Self.rowBytes
      devices.admission.count(device, bytes: max(bytes, unpacked))
    }
    return try devices.standings.checkNow(device)
  }

  /// - Throws: 403 for a revoked device, 503 while nothing is known.
  func finish() async throws(CollectorRefusal) { try await devices.standings.check(device) }
}
