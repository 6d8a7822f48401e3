import PrismBase
public import PrismProtocol

/// Names a key by its bytes and tells nothing of them: for the count of its blocks (docs/security.md, "Keys are counted").
public struct KeyFingerprint: Sendable, Hashable {
  private static let byteCount = 16

  /// Hexadecimal.
  public let text: String

  /// - Throws: `internal` for an empty key, or without memory.
  public init(of key: Secret) throws(PacketError) {
    let bytes = try Hashing.hkdfSHA256(
      key: key, salt: [], info: Array("prism key count".utf8), count: Self.byteCount)
    text = bytes.withBytes { Hex.encode(Array($0)) }
  }

  /// nil unless it is 32 hexadecimal digits.
  public init?(_ text: String) {
    guard text.utf8.count == 2 * Self.byteCount, Hex.decode(text) != nil else { return nil }
    self.text = text
  }
}

/// Keys that are made for one device from a master key that only the receiver has (docs/packet.md, "Keys").
public enum DeviceKey {
  /// The shortest master key.
  public static let masterBytesMin = 16

  /// HKDF-SHA-256 of the master, with the key's id as salt and the device's id in its info. The shorter key of one cipher
  /// is the beginning of the longer key of another.
  /// - Parameter generation: how often the collector forgot the device: each time it has another key.
  /// - Throws: `keyLength` for a master of less than 16 bytes.
  public static func derived(
    master: Secret, keyID: String, deviceID: String, generation: Int = 0, cipher: Cipher
  ) throws(PacketError) -> Secret {
    guard master.count >= masterBytesMin else { throw .keyLength }
    var info = Array("prism device".utf8) + [0] + Array(deviceID.utf8)
    if generation > 0 { info += [0] + Array(String(generation).utf8) }
    return try Hashing.hkdfSHA256(key: master, salt: Array(keyID.utf8), info: info, count: cipher.keyBytes)
  }
}
