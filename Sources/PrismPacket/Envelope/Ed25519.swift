import COpenSSL
public import PrismProtocol

/// Signatures of RFC 8032: 64 bytes over the text itself, which is not hashed before.
public enum Ed25519 {
  /// The length of a public key.
  public static let publicKeyBytes = 32

  /// - Parameter publicKey: 32 bytes; any other count fits no signature.
  public static func isValid(_ signature: [UInt8], of text: [UInt8], publicKey: [UInt8]) -> Bool {
    guard publicKey.count == publicKeyBytes,
      let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, publicKey, publicKey.count)
    else { return false }
    defer { EVP_PKEY_free(key) }
    guard let context = EVP_MD_CTX_new() else { return false }
    defer { EVP_MD_CTX_free(context) }
    return EVP_DigestVerifyInit(context, nil, nil, nil, key) == 1
      && EVP_DigestVerify(context, signature, signature.count, text, text.count) == 1
  }
}

/// A private key for Ed25519.
public struct SigningKey: Sendable {
  private let secret: Secret
  /// 32 bytes, as `remote.publicKey` has them.
  public let publicKey: [UInt8]

  /// - Parameter pem: what `openssl genpkey -algorithm ed25519` writes, without a passphrase.
  /// - Returns: nil for anything else.
  public init?(pem: [UInt8]) {
    guard let halves = PEM.halves(PEM.privateKey(pem), of: EVP_PKEY_ED25519) else { return nil }
    (secret, publicKey) = halves
  }

  func signature(of text: [UInt8]) throws(PacketError) -> [UInt8] {
    let own = secret.withBytes { EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, $0.baseAddress, $0.count) }
    guard let key = own,
      let context = EVP_MD_CTX_new()
    else { throw .internal }
    defer {
      EVP_MD_CTX_free(context)
      EVP_PKEY_free(key)
    }
    var (result, count) = ([UInt8](repeating: 0, count: 64), 64)
    guard EVP_DigestSignInit(context, nil, nil, nil, key) == 1,
      EVP_DigestSign(context, &result, &count, text, text.count) == 1, count == 64
    else { throw .internal }
    return result
  }
}

extension CommandRequest {
  /// The same with a signature of `key`.
  public func signed(by key: SigningKey) throws(PacketError) -> CommandRequest {
    var signed = self
    signed.signature = try key.signature(of: signedBytes)
    return signed
  }

  /// Whether it has a signature of the key whose public half is `publicKey`, 32 bytes.
  public func isSigned(by publicKey: [UInt8]) -> Bool {
    guard let signature, signature.count == Self.signatureBytes else { return false }
    return Ed25519.isValid(signature, of: signedBytes, publicKey: publicKey)
  }
}
