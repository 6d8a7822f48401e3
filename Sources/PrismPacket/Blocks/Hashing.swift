import COpenSSL
package import PrismProtocol

/// The uses of SHA-2 (RFC 2104, RFC 5869): codes, derived keys, device ids, ids of requests, the handshake of Fluent.
package enum Hashing {
  package static func hmacSHA256(key: Secret, _ text: [UInt8]) throws(PacketError) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: 32)
    let isDone = key.withBytes { prism_hmac_sha256($0.baseAddress, $0.count, text, text.count, &result) == 1 }
    guard isDone else { throw .internal }
    return result
  }

  package static func sha256(_ text: [UInt8]) throws(PacketError) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: 32)
    guard EVP_Digest(text, text.count, &result, nil, EVP_sha256(), nil) == 1 else { throw .internal }
    return result
  }

  package static func sha512(_ text: [UInt8]) throws(PacketError) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: 64)
    guard EVP_Digest(text, text.count, &result, nil, EVP_sha512(), nil) == 1 else { throw .internal }
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
