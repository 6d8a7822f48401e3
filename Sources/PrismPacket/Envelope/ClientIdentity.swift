import COpenSSL

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
