/// The answer to `POST /prism/enroll`: the key of one device.
public struct EnrolledKey: Sendable, Equatable {
  /// The device that the key is for.
  public let deviceID: String
  /// The master key that it was made from: `Prism-Key-Id` of the device's packets.
  public let keyID: String
  /// The key of 32 bytes, sealed to the device's public key, in base64. Its first 16 bytes are the key of a cipher with 16.
  public let sealedKey: String
  /// The namespaces that are taken under the key; nil: all.
  public let namespaces: [String]?

  /// An answer as a collector makes it.
  public init(deviceID: String, keyID: String, sealedKey: String, namespaces: [String]?) {
    (self.deviceID, self.keyID, self.sealedKey, self.namespaces) = (deviceID, keyID, sealedKey, namespaces)
  }

  /// - Returns: nil for JSON that is not such an answer.
  public init?(_ json: JSONValue) {
    guard let device = json["deviceId"]?.string, let key = json["keyId"]?.string, let sealed = json["sealedKey"]?.string
    else { return nil }
    self.init(
      deviceID: device, keyID: key, sealedKey: sealed, namespaces: json["namespaces"]?.array?.compactMap(\.string))
  }

  /// The answer's body.
  public var json: JSONValue {
    var members: [JSONValue.Member] = [
      .init("deviceId", .string(deviceID)), .init("keyId", .string(keyID)), .init("sealedKey", .string(sealedKey)),
    ]
    if let namespaces { members.append(.init("namespaces", .array(namespaces.map { .string($0) }))) }
    return .object(members)
  }

  /// The reason that a collector gives for refusing; nil: the answer gives no reason.
  public static func reason(_ answer: JSONValue) -> String? { answer["message"]?.string }
}
