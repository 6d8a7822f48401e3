import PrismBase
import PrismPacket
public import PrismProtocol

/// What lets devices enroll. The collector keeps its hash only.
public struct EnrollmentToken: Sendable, Equatable {
  /// For lists and logs: the first 8 digits of the hash.
  public let name: String
  /// SHA-256 of the token, in hexadecimal digits.
  let hash: String
  /// The master key that the devices' keys are made from.
  public let keyID: String
  /// Devices that it may enroll.
  public let devicesMax: Int
  /// Devices that it has enrolled.
  public var devices = 0
  /// Milliseconds since 1970.
  public let expireTime: Int64

  init(hash: String, keyID: String, devicesMax: Int, expireTime: Int64) {
    (name, self.hash, self.keyID) = (String(hash.prefix(8)), hash, keyID)
    (self.devicesMax, self.expireTime) = (devicesMax, expireTime)
  }

  /// A token that nobody has.
  /// - Returns: the text that devices give, which is not kept.
  public static func new(
    keyID: String, devicesMax: Int, expireTime: Int64
  ) -> (text: String, token: EnrollmentToken) {
    var random = SystemRandomNumberGenerator()  // the kernel's getrandom(2) on Linux
    let text = Hex.encode((0..<24).map { _ in UInt8.random(in: 0...255, using: &random) })
    return (text, EnrollmentToken(hash: hash(of: text), keyID: keyID, devicesMax: devicesMax, expireTime: expireTime))
  }

  static func hash(of text: String) -> String { (try? Checksum.sha256(Array(text.utf8))) ?? "" }

  /// One line of `prism-collector device tokens`.
  public var json: JSONValue {
    [
      "token": .string(name), "keyId": .string(keyID), "devices": .int(devices), "devicesMax": .int(devicesMax),
      "expireTime": .int(Int(expireTime)),
    ]
  }
}
