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
