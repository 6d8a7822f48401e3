import PrismBase
public import PrismProtocol

// The key of a device leaves the collector sealed to the device's own public key (docs/collector.md, "Devices").
extension EnrolledKey {
  /// - Returns: `sealedKey`: a sealed payload in base64, which belongs to the namespace `prism` and the report `enroll KEY-ID`.
  /// - Throws: `decryptionFailed` for a public key of small order.
  public static func seal(
    _ key: Secret, id: String, of device: String, to receiver: SealingPublicKey
  ) throws(PacketError) -> String {
    Base64.encode(try SealedPayload.seal(key.bytes, to: receiver, of: place(id, device)))
  }

  /// - Returns: the 32 bytes of the key.
  /// - Throws: `decryptionFailed` for another key pair, another device or a changed byte; `shortHeader`, `tooLarge`.
  public func open(with pair: SealingPrivateKey, of device: String) throws(PacketError) -> [UInt8] {
    guard let sealed = Base64.decode(Array(sealedKey.utf8)) else { throw .shortHeader }
    let key = try SealedPayload.open(sealed, with: pair, of: Self.place(keyID, device), bytesMax: 32)
    guard key.count == 32 else { throw .keyLength }
    return key
  }

  private static func place(_ id: String, _ device: String) -> SealedReport {
    SealedReport(deviceID: device, namespace: .prism, reportID: "enroll \(id)")
  }
}
