import COpenSSL
import PrismProtocol

/// Reads what is in PEM (RFC 7468) with OpenSSL.
enum PEM {
  /// - Parameter body: reads from the file; the bytes stay where they are until it returns.
  /// - Returns: nil if there is no memory, or if `body` returns nil. OpenSSL's list of errors is empty afterwards.
  static func read<Value>(_ bytes: [UInt8], _ body: (OpaquePointer) -> Value?) -> Value? {
    bytes.withUnsafeBytes { bytes in
      guard let file = BIO_new_mem_buf(bytes.baseAddress, Int32(bytes.count)) else { return nil }
      defer {
        BIO_free(file)
        ERR_clear_error()
      }
      return body(file)
    }
  }

  /// - Returns: nil for anything but a private key without a passphrase. The caller frees it.
  static func privateKey(_ bytes: [UInt8]) -> OpaquePointer? {
    // With a passphrase given, an encrypted key fails; without one OpenSSL would ask on the terminal.
    var passphrase: [CChar] = [0]
    return read(bytes) { PEM_read_bio_PrivateKey($0, nil, nil, &passphrase) }
  }

  /// Both halves of a key of Curve25519, 32 bytes each; nil for a key of another kind. The key is freed.
  static func halves(_ key: OpaquePointer?, of kind: Int32) -> (secret: Secret, publicKey: [UInt8])? {
    defer { EVP_PKEY_free(key) }
    var (secret, publicKey) = ([UInt8](repeating: 0, count: 32), [UInt8](repeating: 0, count: 32))
    var (secretCount, publicCount) = (secret.count, publicKey.count)
    guard let key, EVP_PKEY_get_id(key) == kind, EVP_PKEY_get_raw_private_key(key, &secret, &secretCount) == 1,
      EVP_PKEY_get_raw_public_key(key, &publicKey, &publicCount) == 1
    else { return nil }
    return (Secret(taking: &secret), publicKey)
  }
}

/// A certificate and its private key, both in PEM: the identity of a TLS client.
public enum ClientIdentity {
  /// Why the two make no identity; nil where they do. Nothing of either is in it.
  ///
  /// - Parameter certificate: the client's own first, then those that lead to its authority.
  /// - Parameter key: without a passphrase.
  public static func fault(certificate: [UInt8], key: [UInt8]) -> String? {
    guard let first = PEM.read(certificate, { PEM_read_bio_X509($0, nil, nil, nil) }) else {
      return "the first certificate there cannot be read"
    }
    defer { X509_free(first) }
    guard let key = PEM.privateKey(key) else { return "the key cannot be read" }
    defer { EVP_PKEY_free(key) }
    return X509_check_private_key(first, key) == 1 ? nil : "the key is not that of the first certificate there"
  }
}
