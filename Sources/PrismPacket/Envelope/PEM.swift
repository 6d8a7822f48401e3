import COpenSSL

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
}
