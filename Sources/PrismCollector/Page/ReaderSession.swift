import PrismBase
import PrismHTTP
import PrismPacket

/// A session of the page: a cookie that a reader's token signed. Nothing of it is kept here until it is signed out
/// (`EndedSessions`), so every replica knows it, a restart ends no session, and it ends with its token.
struct ReaderSession: Sendable, Equatable {
  static let cookieName = "prism_session"
  static let lifetimeSeconds: Int64 = 12 * 3600

  let role: ReaderIdentity.Role
  /// Seconds since 1970.
  let expires: Int64
  /// Two sessions of one token differ.
  let nonce: String
  /// The token's code of the others.
  let code: String

  private init(role: ReaderIdentity.Role, expires: Int64, nonce: String, code: String) {
    (self.role, self.expires, self.nonce, self.code) = (role, expires, nonce, code)
  }

  /// The text that the token signs.
  private static func text(_ role: ReaderIdentity.Role, _ expires: Int64, _ nonce: String) -> String {
    "prism session\n\(role.rawValue)\n\(expires)\n\(nonce)"
  }

  /// Makes a session. - Returns: nil if the token is not among `tokens`.
  /// - Parameter now: milliseconds since 1970.
  static func begin(
    _ role: ReaderIdentity.Role, token: String, of tokens: TokenAuthenticator, now: Int64
  ) async -> ReaderSession? {
    guard let random = try? Hashing.randomBytes(16) else { return nil }
    let (expires, nonce) = (now / 1000 + lifetimeSeconds, Hex.encode(random))
    guard let code = await tokens.sign(text(role, expires, nonce), with: token) else { return nil }
    return ReaderSession(role: role, expires: expires, nonce: nonce, code: code)
  }

  /// Reads the cookie of a request; nil: it has no cookie of this form.
  init?(_ request: HTTPRequest) {
    let pairs = request.headers("cookie").flatMap { $0.split(separator: ";") }
    let values = pairs.compactMap { pair -> Substring? in
      let pair = pair.drop { $0 == " " }
      return pair.hasPrefix(Self.cookieName + "=") ? pair.dropFirst(Self.cookieName.count + 1) : nil
    }
    guard let parts = values.first?.split(separator: ".", omittingEmptySubsequences: false), parts.count == 4,
      let role = ReaderIdentity.Role(rawValue: String(parts[0])), let expires = Int64(parts[1]),
      parts[2].utf8.count == 32, parts[3].utf8.count == 64
    else { return nil }
    self.init(role: role, expires: expires, nonce: String(parts[2]), code: String(parts[3]))
  }

  /// - Returns: SHA-256 of the token that signed it; nil: no token of `tokens` did, or it expired.
  func tokenHash(of tokens: TokenAuthenticator, now: Int64) async -> String? {
    guard expires > now / 1000 else { return nil }
    return await tokens.signer(of: Self.text(role, expires, nonce), code: code)
  }

  /// A page of another origin can send the cookie, but can't read this: every change must bring it.
  var changeToken: String { (try? Hashing.sha256(Array("prism change\n\(code)".utf8))).map { Hex.encode($0) } ?? "" }

  private var value: String { "\(role.rawValue).\(expires).\(nonce).\(code)" }

  /// `Set-Cookie`.
  func header(isSecure: Bool) -> (name: String, value: String) {
    Self.header(value, seconds: Self.lifetimeSeconds, isSecure: isSecure)
  }

  /// `Set-Cookie` that ends any session.
  static func endingHeader(isSecure: Bool) -> (name: String, value: String) {
    header("", seconds: 0, isSecure: isSecure)
  }

  private static func header(_ value: String, seconds: Int64, isSecure: Bool) -> (name: String, value: String) {
    let secure = isSecure ? "; Secure" : ""
    return ("Set-Cookie", "\(cookieName)=\(value); Path=/; HttpOnly; SameSite=Strict; Max-Age=\(seconds)\(secure)")
  }
}
