/// How a packet's blocks are encrypted (docs/packet.md).
public enum Cipher: String, Sendable, CaseIterable {
  case aes128GCM = "aes-128-gcm"
  case aes256GCM = "aes-256-gcm"
  case aes128CBC = "aes-128-cbc"

  /// The length of its key: 16 or 32.
  public var keyBytes: Int { self == .aes256GCM ? 32 : 16 }
}
