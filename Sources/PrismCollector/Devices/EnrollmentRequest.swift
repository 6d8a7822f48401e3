import PrismBase
import PrismPacket
import PrismProtocol

/// A device that asks for its key, and what it says of itself.
package struct EnrollmentRequest: Sendable, Equatable {
  let deviceID: String
  let info: String?
}

extension EnrollmentRequest {
  /// - Throws: 400 for a body that is no enrollment.
  init(_ body: [UInt8], bytesMax: Int, infoBytesMax: Int) throws(CollectorRefusal) {
    guard body.count <= bytesMax, let json = try? JSONValue(parsing: body), let members = json.object,
      members.allSatisfy({ ["deviceId", "info"].contains($0.key) })
    else {
      throw CollectorRefusal(
        400, "an enrollment is a JSON object of at most \(bytesMax) bytes with deviceId and, if wanted, info")
    }
    guard let device = json["deviceId"]?.string, DeviceID.isValid(device) else {
      throw CollectorRefusal(400, "deviceId must be 1 to 128 visible ASCII characters")
    }
    let info = json["info"].map { OutputText.line($0.string ?? $0.text) }
    guard info?.utf8.count ?? 0 <= infoBytesMax else {
      throw CollectorRefusal(400, "info must have at most \(infoBytesMax) bytes")
    }
    self.init(deviceID: device, info: info)
  }
}
