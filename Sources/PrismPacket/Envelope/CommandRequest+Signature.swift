public import PrismProtocol

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
