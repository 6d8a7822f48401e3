import PrismProtocol

/// Whether a certificate and a private key are one identity. It takes a cryptographic library, and who has one brings it.
/// - Returns: why they are not, for a fault.
public typealias ClientIdentityCheck = @Sendable (_ certificate: [UInt8], _ key: [UInt8]) -> String?

extension Checker {
  /// Each pair is looked at once: thousands of namespaces may have the same.
  mutating func checkIdentity(_ tls: NamespaceConfiguration.TLS, keyLine: Int, _ key: String) {
    guard let certificate = tls.certFile, let privateKey = tls.keyFile, let identityCheck else { return }
    let pair = [certificate.path, privateKey.path]
    let known = identities[pair] ?? identityCheck(certificate.content.bytes, privateKey.content.bytes) ?? ""
    identities[pair] = known
    guard !known.isEmpty else { return }
    let paths = (privateKey.path.shownAtItsEnd, certificate.path.shownAtItsEnd)
    fault(keyLine, key, "is \(paths.0) beside the certificate \(paths.1): \(known); give two that belong together")
  }
}

extension String {
  /// The end of a path says more than its beginning.
  fileprivate var shownAtItsEnd: String {
    let line = printable
    return line.count > 60 ? "..." + line.suffix(57) : line
  }
}
