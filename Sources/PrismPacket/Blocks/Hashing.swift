import CDeflate
import COpenSSL
import PrismBase
package import PrismProtocol

/// The uses of SHA-2 (RFC 2104, RFC 5869): codes, derived keys, device ids, the handshake of Fluent. And GMAC: which request is
/// which.
package enum Hashing {
  package static func hmacSHA256(key: Secret, _ text: [UInt8]) throws(PacketError) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: 32)
    let isDone = key.withBytes { prism_hmac_sha256($0.baseAddress, $0.count, text, text.count, &result) == 1 }
    guard isDone else { throw .internal }
    return result
  }

  /// AES-128-GMAC: where the key is secret, two texts have one code by chance alone, at a fraction of a hash's cost.
  /// - Parameter key: 16 bytes. - Parameter nonce: 12 bytes.
  package static func gmac(key: [UInt8], nonce: [UInt8], _ text: [UInt8]) throws(PacketError) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: 16)
    guard key.count == 16, nonce.count == 12, prism_gmac(key, nonce, text, text.count, &result) == 1 else {
      throw .internal
    }
    return result
  }

  package static func sha256(_ text: [UInt8]) throws(PacketError) -> [UInt8] {
    try digest(text, EVP_sha256(), count: 32)
  }

  package static func sha512(_ text: [UInt8]) throws(PacketError) -> [UInt8] {
    try digest(text, EVP_sha512(), count: 64)
  }

  private static func digest(_ text: [UInt8], _ method: OpaquePointer?, count: Int) throws(PacketError) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: count)
    guard EVP_Digest(text, text.count, &result, nil, method, nil) == 1 else { throw .internal }
    return result
  }

  /// HKDF without salt; 32 bytes.
  static func hkdfSHA256(key: Secret, info: String) throws(PacketError) -> Secret {
    try hkdfSHA256(key: key, salt: [], info: Array(info.utf8), count: 32)
  }

  /// - Parameter salt: empty without a salt.
  static func hkdfSHA256(key: Secret, salt: [UInt8], info: [UInt8], count: Int) throws(PacketError) -> Secret {
    var result = [UInt8](repeating: 0, count: count)
    let isDone = key.withBytes {
      prism_hkdf_sha256($0.baseAddress, $0.count, salt, salt.count, info, info.count, &result, count) == 1
    }
    guard isDone else { throw .internal }
    return Secret(taking: &result)
  }

  /// Takes as long for any two arrays of one length, so that a code can't be guessed byte by byte.
  package static func areEqual(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    a.count == b.count && CRYPTO_memcmp(a, b, a.count) == 0
  }

  /// `count` unpredictable bytes.
  package static func randomBytes(_ count: Int) throws(PacketError) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: count)
    guard RAND_bytes(&result, Int32(count)) == 1 else { throw .internal }
    return result
  }
}

/// Tells whether bytes are those that were written.
public enum Checksum {
  /// SHA-256 as 64 hexadecimal digits.
  public static func sha256(_ bytes: [UInt8]) throws(PacketError) -> String {
    Hex.encode(try Hashing.sha256(bytes))
  }

  /// The CRC-32 of gzip over pieces, one after the other; against damage, not against intent.
  public struct CRC32: Sendable {
    /// The checksum of the bytes so far.
    public private(set) var value: UInt32 = 0
    public init() {}

    /// Adds `bytes` to the checksum.
    public mutating func add(_ bytes: UnsafeRawBufferPointer) {
      // Without an address the library would begin again.
      if bytes.count > 0 { value = libdeflate_crc32(value, bytes.baseAddress, bytes.count) }
    }
  }
}
