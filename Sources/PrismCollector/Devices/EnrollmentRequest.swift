import PrismBase
import PrismPacket
import PrismProtocol

/// A device that asks for its key, and what it says of itself.
package struct EnrollmentRequest: Sendable, Equatable {
  let deviceID: String
  /// The device's own public key. The answer is sealed to it, and is given again to it only.
  let publicKey: SealingPublicKey
  let info: String?
  /// The collector has packets of a device of this id.
  var hasSent = false
}

extension EnrollmentRequest {
  /// - Throws: 400 for a body that is no enrollment.
  init(_ body: [UInt8], bytesMax: Int, infoBytesMax: Int) throws(CollectorRefusal) {
    guard body.count <= bytesMax, let json = try? JSONValue(parsing: body), let members = json.object,
      members.allSatisfy({ ["deviceId", "publicKey", "info"].contains($0.key) })
    else {
      throw CollectorRefusal(
        400, "an enrollment is a JSON object of at most \(bytesMax) bytes with deviceId, publicKey and, if wanted, info"
      )
    }
    guard let device = json["deviceId"]?.string, DeviceID.isValid(device) else {
      throw CollectorRefusal(400, "deviceId must be 1 to 128 visible ASCII characters")
    }
    guard let publicKey = json["publicKey"]?.string.flatMap({ SealingPublicKey(base64: $0) }),
      // Nothing can be sealed to a key of small order.
      (try? EnrolledKey.seal(Secret([]), id: "", of: device, to: publicKey)) != nil
    else {
      throw CollectorRefusal(
        400, "publicKey must be an X25519 public key in base64, to which the answer is sealed; update prismctl")
    }
    let info = json["info"].map { OutputText.line($0.string ?? $0.text) }
    guard info?.utf8.count ?? 0 <= infoBytesMax else {
      throw CollectorRefusal(400, "info must have at most \(infoBytesMax) bytes")
    }
    self.init(deviceID: device, publicKey: publicKey, info: info)
  }
}
