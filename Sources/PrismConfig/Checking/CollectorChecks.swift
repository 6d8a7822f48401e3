/// Whether a certificate and a private key are one identity. It takes a cryptographic library, and who has one brings it.
/// - Returns: why they are not, for a fault.
public typealias ClientIdentityCheck = @Sendable (_ certificate: [UInt8], _ key: [UInt8]) -> String?

/// Checks of a collector's settings by libraries that this module does without. Each answers why a value is
/// refused, in words that fit after its key; nil: it is in order. No secret is in them.
public struct CollectorChecks: Sendable {
  /// Of a text that begins like a connection URI of PostgreSQL.
  public var storeFault: @Sendable (_ uri: String) -> String?
  /// Of an X25519 key, PEM.
  public var sealKeyFault: @Sendable (_ pem: [UInt8]) -> String?
  /// Of an Ed25519 key, PEM.
  public var signingKeyFault: @Sendable (_ pem: [UInt8]) -> String?
  /// Of a JSON Web Key Set.
  public var webKeysFault: @Sendable (_ json: [UInt8]) -> String?
  /// Of a file of librdkafka's properties.
  public var propertiesFault: @Sendable (_ path: String) -> String?
  /// Of a certificate beside its key.
  public var identityFault: ClientIdentityCheck

  /// Takes a check for each kind of value.
  public init(
    storeFault: @escaping @Sendable (String) -> String?, sealKeyFault: @escaping @Sendable ([UInt8]) -> String?,
    signingKeyFault: @escaping @Sendable ([UInt8]) -> String?, webKeysFault: @escaping @Sendable ([UInt8]) -> String?,
    propertiesFault: @escaping @Sendable (String) -> String?, identityFault: @escaping ClientIdentityCheck
  ) {
    (self.storeFault, self.sealKeyFault, self.signingKeyFault) = (storeFault, sealKeyFault, signingKeyFault)
    self.webKeysFault = webKeysFault
    (self.propertiesFault, self.identityFault) = (propertiesFault, identityFault)
  }
}
