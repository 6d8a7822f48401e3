import COpenSSL
import PrismBase
import PrismProtocol

/// The key to which payloads are sealed: an X25519 public key (RFC 7748).
public struct SealingPublicKey: Sendable, Equatable {
  /// The length of a key.
  public static let byteCount = 32
  /// The 32 bytes of the key.
  public let bytes: [UInt8]

  /// - Returns: nil unless there are 32 bytes.
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// Base64 (RFC 4648, padded), as `seal.publicKey` has it.
  public init?(base64 text: String) {
    guard let bytes = Base64.decode(Array(text.utf8)) else { return nil }
    self.init(bytes)
  }

  /// The key as base64, as configurations have it.
  public var base64: String { Base64.encode(bytes) }
}

/// Opens what is sealed to its public key. It never is on the device that seals.
public struct SealingPrivateKey: Sendable {
  let secret: Secret
  /// The public key to this private key.
  public let publicKey: SealingPublicKey

  /// A new key.
  public init() throws(PacketError) {
    guard let key = Self(try Hashing.randomBytes(32)) else { throw .internal }
    self = key
  }

  /// - Returns: nil unless there are 32 bytes.
  public init?(_ bytes: [UInt8]) {
    guard bytes.count == 32 else { return nil }
    self.init(EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nil, bytes, bytes.count))
  }

  /// - Parameter pem: what `openssl genpkey -algorithm x25519` writes, without a passphrase.
  /// - Returns: nil for anything else.
  public init?(pem: [UInt8]) {
    self.init(PEM.privateKey(pem))
  }

  private init?(_ key: OpaquePointer?) {
    guard let halves = PEM.halves(key, of: EVP_PKEY_X25519), let known = SealingPublicKey(halves.publicKey) else {
      return nil
    }
    (secret, publicKey) = (halves.secret, known)
  }

  /// PKCS#8 in PEM, as `openssl` reads it.
  public var pem: String {
    // RFC 8410: version 0, algorithm 1.3.101.110, an octet string with the octet string of the key.
    let head: [UInt8] = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 110, 4, 34, 4, 32]
    return "-----BEGIN PRIVATE KEY-----\n\(Base64.encode(head + secret.bytes))\n-----END PRIVATE KEY-----\n"
  }

  /// X25519 with another's public key.
  /// - Throws: `decryptionFailed` for a public key of small order.
  func shared(with other: SealingPublicKey) throws(PacketError) -> Secret {
    var result = [UInt8](repeating: 0, count: 32)
    let isDone = secret.withBytes { prism_x25519($0.baseAddress, other.bytes, &result) == 1 }
    guard isDone else { throw .decryptionFailed }
    return Secret(taking: &result)
  }
}
