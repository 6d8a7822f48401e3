import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite
import Synchronization

/// A session of the page: a cookie that a reader's token signed. Nothing of it is kept here until it is signed out
/// (`EndedSessions`), so every replica knows it, a restart ends no session, and it ends with its token.
struct ReaderSession: Sendable, Equatable {
  /// No page of a neighbouring name and no page of plain HTTP can set the first.
  static func cookieName(isSecure: Bool) -> String { isSecure ? "__Host-prism_session" : "prism_session" }
  static let lifetimeSeconds: Int64 = 12 * 3600

  let role: ReaderIdentity.Role
  /// Seconds since 1970.
  let expires: Int64
  /// Two sessions of one token differ.
  let nonce: String
  /// The token's code of the others.
  let code: String

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

  /// - Returns: the token that signed it; nil: no token of `tokens` did, or it expired.
  func token(of tokens: TokenAuthenticator, now: Int64) async -> KnownToken? {
    guard expires > now / 1000 else { return nil }
    return await tokens.signer(of: Self.text(role, expires, nonce), code: code)
  }

  /// `Set-Cookie`. - Parameter session: nil ends any session.
  static func header(_ session: ReaderSession?, isSecure: Bool) -> (name: String, value: String) {
    let value = session.map { "\($0.role.rawValue).\($0.expires).\($0.nonce).\($0.code)" } ?? ""
    let seconds = session == nil ? 0 : lifetimeSeconds
    let secure = isSecure ? "; Secure" : ""
    let name = cookieName(isSecure: isSecure)
    return ("Set-Cookie", "\(name)=\(value); Path=/; HttpOnly; SameSite=Strict; Max-Age=\(seconds)\(secure)")
  }
}

extension ReaderSession {
  /// Reads the cookie of a request; nil: it has no cookie of this form.
  init?(_ request: HTTPRequest, isSecure: Bool) {
    let prefix = Self.cookieName(isSecure: isSecure) + "="
    let pairs = request.headers("cookie").flatMap { $0.split(separator: ";") }
    let values = pairs.compactMap { pair -> Substring? in
      let pair = pair.drop { $0 == " " }
      return pair.hasPrefix(prefix) ? pair.dropFirst(prefix.count) : nil
    }
    guard let parts = values.first?.split(separator: ".", omittingEmptySubsequences: false), parts.count == 4,
      let role = ReaderIdentity.Role(rawValue: String(parts[0])), let expires = Int64(parts[1]),
      parts[2].utf8.count == 32, parts[3].utf8.count == 64
    else { return nil }
    self.init(role: role, expires: expires, nonce: String(parts[2]), code: String(parts[3]))
  }
}

/// The one who reads: the role, and a name for the log.
struct ReaderIdentity: Sendable, Equatable {
  enum Role: String, Sendable, CaseIterable {
    /// Reads.
    case viewer
    /// Changes, too.
    case `operator`
  }

  let role: Role
  /// The namespaces that it reads and changes.
  let scope: Scope
  /// `owner`, `local`, or the role with the proxy's name of the reader, or with the first digits of the token's SHA-256, which
  /// tell two tokens apart and show neither.
  let name: String
  /// The session that the request came with.
  var session: ReaderSession?
  /// The reader as a proxy names it.
  var subject: String?

  /// A page of another origin can make the browser send a request that has a session, or comes over the proxy. It can't read
  /// this, so every change must bring it. nil: no web page can have sent the request by itself. Empty only where the library
  /// fails: then no change is taken.
  var changeToken: String? {
    guard let proof = session?.code ?? subject else { return nil }
    return (try? Hashing.sha256(Array("prism change\n\(proof)".utf8))).map { Hex.encode($0) } ?? ""
  }

  /// Of the Unix socket, which only the owner of the state folder can open.
  static let owner = ReaderIdentity(role: .operator, scope: .everything, name: "owner")
  /// Of a collector without tokens, asked from its own machine.
  static let local = ReaderIdentity(role: .viewer, scope: .fleet, name: "local")
  /// The same of a collector that was started with `--dev`.
  static let trial = ReaderIdentity(role: .operator, scope: .everything, name: "operator (--dev)")
}

extension ReaderIdentity {
  /// Operators without a list read the namespace in which the collector notes its readers, too.
  init(role: Role, _ namespaces: [String]?, name: String, session: ReaderSession? = nil, subject: String? = nil) {
    let scope = Scope(namespaces, hasAudit: namespaces == nil && role == .operator)
    self.init(role: role, scope: scope, name: "\(role.rawValue) \(name)", session: session, subject: subject)
  }

  init(role: Role, _ token: KnownToken, session: ReaderSession? = nil) {
    self.init(role: role, token.namespaces, name: String(token.hash.prefix(8)), session: session)
  }

  /// - Throws: 403 for a reader with a list of namespaces, if it is about all of them.
  func check(_ reach: PageRoute.Reach) throws(CollectorRefusal) {
    guard reach == .own || !scope.isLimited else {
      throw CollectorRefusal(403, "this is about all namespaces, and the token is for some of them")
    }
  }
}

// Signing in and out.
extension PageAPI {
  /// `GET /session`: who is signed in; what a client needs for changes.
  func session(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    Self.json(of: Self.described(request.reader, needsToken: collector.access.needsReaderToken))
  }

  private static func described(_ reader: ReaderIdentity?, needsToken: Bool) -> JSONValue {
    JSONValue([
      "signedIn": reader != nil, "needsToken": needsToken, "role": reader?.role.rawValue, "name": reader?.name,
      "namespaces": reader?.scope.patterns,
      "changeToken": reader?.changeToken, "expires": reader?.session.map { $0.expires * 1000 },
      "version": PrismVersion.current,
    ])
  }

  /// `POST /session` with `{"token": …}`: begins a session.
  func signIn(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let body = try Self.body(request, known: ["token": .text], bytesMax: 4096)
    guard let token = body["token"]?.string, !token.isEmpty else {
      throw CollectorRefusal(400, "the body must be {\"token\": \"…\"}")
    }
    let reader = try await collector.access.signIn(token, from: request.http.peer)
    collector.log.info(
      "a reader signed in at the page", ["who": reader.name, "address": request.http.peer.address])
    collector.access.audit?.note(request.http, by: reader, status: 200)
    let cookie = reader.session.map { ReaderSession.header($0, isSecure: collector.access.isSecure(request.http)) }
    return Self.json(of: Self.described(reader, needsToken: true), headers: [cookie].compactMap { $0 })
  }

  /// `POST /session/end`: the session ends, here and at all replicas, and the browser forgets it.
  func signOut(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    if let reader = request.reader {
      try Self.checkChange(request.http, reader)
      if let session = reader.session { try await collector.access.endedSessions.end(session) }
    }
    let cookie = ReaderSession.header(nil, isSecure: collector.access.isSecure(request.http))
    return Self.json(of: Self.described(nil, needsToken: collector.access.needsReaderToken), headers: [cookie])
  }
}

/// Counts sign-ins that failed, so that no address tries many tokens.
final class SignInLimit: Sendable {
  /// Of one address in a minute.
  static let failuresMax = 10
  /// Addresses that are known; past it all others share one count.
  private static let addressesMax = 1000

  private struct State {
    var minute: Int64 = 0
    var failures: [String: Int] = [:]
  }

  private let state = Mutex(State())
  private let time: any TimeSource

  init(time: any TimeSource) { self.time = time }

  private func key(_ address: String, _ state: State) -> String {
    state.failures[address] == nil && state.failures.count >= Self.addressesMax ? "other" : address
  }

  private func renew(_ state: inout State) {
    let minute = time.uptime.components.seconds / 60
    if minute != state.minute { state = State(minute: minute) }
  }

  /// - Returns: whether the address may try.
  func allows(_ address: String) -> Bool {
    state.withLock { state in
      renew(&state)
      return state.failures[key(address, state), default: 0] < Self.failuresMax
    }
  }

  func failed(_ address: String) {
    state.withLock { state in
      renew(&state)
      state.failures[key(address, state), default: 0] += 1
    }
  }
}

/// Knows which sessions of the page were signed out, by this replica and others, until they would have expired. They are read
/// again when 2 s have passed, so that a session ends everywhere within 5.
actor EndedSessions {
  /// Sessions that are remembered; past them, those that expire first are forgotten.
  static let countMax = 100_000
  private static let interval: Duration = .seconds(2)

  private enum Column: String, SQLiteColumn { case nonce, expires }

  private let executor = DispatchQueueExecutor(label: "prism.collector.sessions")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let session: FleetSession
  private let time: any TimeSource
  private var nonces: Set<String>?
  private var readAt: Duration?

  init(_ database: FleetDatabase, time: any TimeSource) { (session, self.time) = (FleetSession(database), time) }

  /// - Throws: 503 while nothing is known.
  func contains(_ session: ReaderSession) throws(CollectorRefusal) -> Bool {
    if readAt.map({ time.uptime - $0 >= Self.interval }) ?? true {
      readAt = time.uptime
      do throws(StoreFailure) { nonces = try read() } catch {
        if nonces == nil { readAt = nil }
      }
    }
    guard let nonces else { throw .unreadable }
    return nonces.contains(session.nonce)
  }

  /// At rest when it returns. - Throws: 503 if it can't be stored: then the session goes on.
  func end(_ ended: ReaderSession) throws(CollectorRefusal) {
    do throws(StoreFailure) {
      try session.write { statements in
        try statements.insert(
          Column.self, into: "ended_sessions", [ended.nonce, ended.expires], onConflict: "DO NOTHING")
        // No clock ends their time: one that was ahead would let them begin again.
        try statements.run(
          """
          DELETE FROM ended_sessions WHERE nonce IN (SELECT nonce FROM ended_sessions
            ORDER BY expires DESC, nonce LIMIT 1000 OFFSET \(Self.countMax))
          """)
      }
    } catch { throw .unreadable }
    nonces?.insert(ended.nonce)
  }

  private func read() throws(StoreFailure) -> Set<String> {
    try session.read { Set(try $0.rows(of: Column.self, "FROM ended_sessions").map { $0.text(.nonce) }) }
  }
}
