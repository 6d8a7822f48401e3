import COpenSSL

/// A certificate and its private key, both in PEM: the identity of a TLS client.
public enum ClientIdentity {
  /// Why the two make no identity; nil where they do. Nothing of either is in it.
  ///
  /// - Parameter certificate: the client's own first, then those that lead to its authority.
  /// - Parameter key: without a passphrase.
  public static func fault(certificate: [UInt8], key: [UInt8]) -> String? {
    guard let first = read(certificate, { PEM_read_bio_X509($0, nil, nil, nil) }) else {
      return "the first certificate there cannot be read"
    }
    defer { X509_free(first) }
    // With a passphrase given, an encrypted key fails; without one OpenSSL would ask on the terminal.
    var passphrase: [CChar] = [0]
    guard let key = read(key, { PEM_read_bio_PrivateKey($0, nil, nil, &passphrase) }) else {
      return "the key cannot be read"
    }
    defer { EVP_PKEY_free(key) }
    return X509_check_private_key(first, key) == 1 ? nil : "the key is not that of the first certificate there"
  }

  private static func read<Value>(_ pem: [UInt8], _ body: (OpaquePointer) -> Value?) -> Value? {
    guard let file = BIO_new_mem_buf(pem, Int32(pem.count)) else { return nil }
    defer {
      BIO_free(file)
      ERR_clear_error()
    }
    return body(file)
  }
}
