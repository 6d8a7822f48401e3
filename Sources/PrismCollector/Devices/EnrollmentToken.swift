import PrismBase
import PrismPacket
package import PrismProtocol

/// A secret that lets devices enroll. The collector keeps its hash only.
package struct EnrollmentToken: Sendable, Equatable {
  /// For lists and logs: the first 8 digits of the hash.
  package let name: String
  /// SHA-256 of the token, in hexadecimal digits.
  let hash: String
  /// The master key that the devices' keys are made from.
  package let keyID: String
  /// Devices that it may enroll.
  package let devicesMax: Int
  /// Devices that it has enrolled.
  package var devices = 0
  /// Milliseconds since 1970.
  package let expireTime: Int64
  /// The only device that it is for; nil: any that sent nothing yet.
  package let device: String?
  /// The devices that it enrolls get these tags; nil: it changes no tags.
  package let tags: DeviceTags?

  init(
    hash: String, keyID: String, devicesMax: Int, expireTime: Int64, device: String? = nil, tags: DeviceTags? = nil
  ) {
    (name, self.hash, self.keyID) = (String(hash.prefix(8)), hash, keyID)
    (self.devicesMax, self.expireTime, self.device) = (devicesMax, expireTime, device)
    self.tags = tags
  }

  /// A new token.
  /// - Returns: the text that devices give, which is not kept.
  package static func new(
    keyID: String, devicesMax: Int, expireTime: Int64, device: String? = nil, tags: DeviceTags? = nil
  ) -> (text: String, token: EnrollmentToken) {
    let text = Hex.random(byteCount: 24)
    let token = EnrollmentToken(
      hash: hash(of: text), keyID: keyID, devicesMax: devicesMax, expireTime: expireTime, device: device,
      tags: tags)
    return (text, token)
  }

  static func hash(of text: String) -> String { (try? Checksum.sha256(Array(text.utf8))) ?? "" }

  /// One line of `prism-collector device tokens`.
  package var json: JSONValue {
    .object(
      [
        .init("token", .string(name)), .init("keyId", .string(keyID)), .init("devices", .int(devices)),
        .init("devicesMax", .int(devicesMax)), .init("expireTime", .int(Int(expireTime))),
      ] + (device.map { [.init("deviceId", .string($0))] } ?? []) + (tags.map { [.init("tags", $0.fields)] } ?? []))
  }
}
