import PrismBase
import PrismPacket

/// The one who reads: the role, and a name for the log.
struct ReaderIdentity: Sendable, Equatable {
  enum Role: String, Sendable, CaseIterable {
    /// Reads.
    case viewer
    /// Changes, too.
    case `operator`
  }

  let role: Role
  /// `owner`, `local`, or the role with the first digits of the token's SHA-256: it tells two tokens apart, and shows
  /// neither.
  let name: String
  /// The session that the request came with; nil: it came without one, so no web page can have sent it by itself.
  var session: ReaderSession?

  /// Of the Unix socket, which only the owner of the state folder can open.
  static let owner = ReaderIdentity(role: .operator, name: "owner")
  /// Of a collector without tokens, asked from its own machine.
  static let local = ReaderIdentity(role: .viewer, name: "local")
  /// The same of a collector that was started with `--dev`.
  static let trial = ReaderIdentity(role: .operator, name: "operator (--dev)")

  init(role: Role, name: String, session: ReaderSession? = nil) {
    (self.role, self.name, self.session) = (role, name, session)
  }

  /// - Parameter hash: SHA-256 of the token, in hexadecimal digits.
  init(role: Role, hash: String, session: ReaderSession? = nil) {
    self.init(role: role, name: "\(role.rawValue) \(hash.prefix(8))", session: session)
  }

  init(role: Role, token: String, session: ReaderSession? = nil) {
    let hash = (try? Hashing.sha256(Array(token.utf8))).map { Hex.encode($0) } ?? ""
    self.init(role: role, hash: hash, session: session)
  }
}
