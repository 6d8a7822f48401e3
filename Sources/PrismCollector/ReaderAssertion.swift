import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol

/// A reader by the word of a proxy: a header with a JSON Web Token that it signed (docs/page.md, "Single sign-on").
struct ReaderAssertion: Sendable {
  /// The proxy's clock and the collector's may differ by it.
  private static let leewaySeconds = 60.0

  private let header: String
  private let rules: CollectorConfiguration.Assertion
  private let keys: WatchedFile<WebKeys>

  /// nil: no proxy says who reads.
  init?(_ rules: CollectorConfiguration.Assertion, time: any TimeSource, log: Logger) {
    guard let header = rules.header, let file = rules.keys, rules.audience != nil else { return nil }
    (self.header, self.rules) = (header, rules)
    keys = WatchedFile(path: file.path, time: time, log: log) { (bytes) throws(FileFault) in
      guard let keys = WebKeys(parsing: bytes) else { throw FileFault(WebKeys.fault) }
      return keys
    }
  }

  /// - Parameter now: milliseconds since 1970.
  /// - Returns: nil: the request has no such header, and came past the proxy.
  /// - Throws: 401 for one that proves nothing.
  func subject(_ request: HTTPRequest, now: Int64) async throws(CollectorRefusal) -> String? {
    let values = request.headers(header)
    guard let value = values.first else { return nil }
    let token = value.hasPrefix("Bearer ") ? String(value.dropFirst("Bearer ".count)) : value
    guard values.count == 1, let claims = await keys.value()?.claims(of: token) else {
      throw refusal("is no JSON Web Token that a key of assertion.keysFile signed")
    }
    let seconds = Double(now) / 1000
    guard let expires = claims["exp"]?.double, expires + Self.leewaySeconds > seconds,
      (claims["nbf"]?.double ?? 0) - Self.leewaySeconds <= seconds
    else { throw refusal("has expired, or is of later; compare the clocks of the proxy and the collector") }
    let audiences = claims["aud"]?.array?.compactMap(\.string) ?? [claims["aud"]?.string].compactMap(\.self)
    guard audiences.contains(where: { $0 == rules.audience }) else {
      throw refusal("is for another audience than assertion.audience")
    }
    guard rules.issuer == nil || claims["iss"]?.string == rules.issuer else {
      throw refusal("is of another issuer than assertion.issuer")
    }
    guard let subject = claims[rules.claim]?.string else { throw refusal("has no text in the claim \(rules.claim)") }
    return subject
  }

  private func refusal(_ what: String) -> CollectorRefusal {
    CollectorRefusal(401, code: .token, "the header \(header) \(what)")
  }
}
