import PrismProtocol

/// Which device the packets of one namespace and kind are from.
///
/// A collector knows a packet by its device and its id. So a packet that may have left is repeated under its first
/// device, over restarts too, also if `device.id` changed: it would be stored twice. The new device begins with the
/// first packet that is claimed while no other is in flight, and with a chain of its own.
struct StreamIdentity: Sendable, Equatable {
  /// The note that holds it.
  static func key(_ kind: RowKind) -> String { "sender.\(kind.name)" }

  let deviceID: String
  /// The last packet that was accepted of the devices before this one: no packet of this one depends on it.
  let former: PacketID?

  init(deviceID: String, former: PacketID? = nil) { (self.deviceID, self.former) = (deviceID, former) }

  /// nil if it is damaged. It contains the device twice, so that a damaged one is never used.
  init?(note: [UInt8]) {
    let lines = String(decoding: note, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.count == 3, lines[0] == lines[1], !lines[0].isEmpty else { return nil }
    self.init(deviceID: String(lines[0]), former: PacketID(String(lines[2])))
  }

  var note: [UInt8] { Array("\(deviceID)\n\(deviceID)\n\(former?.description ?? "")".utf8) }

  /// - Parameter last: the last packet that the collector accepted of the namespace and kind.
  func predecessor(_ last: PacketID?) -> PacketID? { last == former ? nil : last }
}
