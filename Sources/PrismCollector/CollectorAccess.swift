import PrismBase
import PrismConfig
import PrismHTTP
import PrismProtocol

/// The rights of senders and readers: their bearer tokens, and the names that the collector may be asked by.
struct CollectorAccess: Sendable {
  /// nil: senders need no token.
  let senders: TokenAuthenticator?
  /// Of readers, those who change first.
  private let roles: [(role: ReaderIdentity.Role, tokens: TokenAuthenticator)]
  /// nil: no proxy says who reads.
  private let assertion: ReaderAssertion?
  private let hosts: HostCheck
  private let wrongTokens: SignInLimit, signIns: SignInLimit
  let page: PageState
  let endedSessions: EndedSessions
  /// nil: who reads and changes is not noted.
  let audit: AuditLog?
  private let isTrial: Bool, servesTLS: Bool
  private let time: any TimeSource

  init(_ options: CollectorOptions, page: PageState, audit: AuditLog?, time: any TimeSource, log: Logger) {
    (self.page, self.audit) = (page, audit)
    endedSessions = EndedSessions(options.fleet, time: time)
    let tokens = { (path: String?, isOfReaders) in
      path.map { TokenAuthenticator(path: $0, isOfReaders: isOfReaders, time: time, log: log) }
    }
    senders = tokens(options.tokenFile, false)
    let files = [(ReaderIdentity.Role.operator, options.operatorTokenFile), (.viewer, options.readerTokenFile)]
    roles = files.compactMap { role, file in tokens(file, true).map { (role, $0) } }
    assertion = ReaderAssertion(options.assertion, time: time, log: log)
    (hosts, isTrial, servesTLS) = (HostCheck(names: options.reader.hosts), options.isTrial, options.tls != nil)
    (wrongTokens, signIns, self.time) = (SignInLimit(time: time), SignInLimit(time: time), time)
  }

  /// - Throws: 401 without a good token, 429 after too many wrong ones of the address.
  func checkSender(_ request: HTTPRequest) async throws(CollectorRefusal) {
    guard let senders, await !senders.accepts(request.header("authorization")) else { return }
    throw wrongToken(request, wrongTokens, "the bearer token is missing or wrong")
  }

  /// The same at once, by the head.
  /// - Returns: whether a token proves the sender; false too if the file of tokens has to be read first.
  func checkSenderNow(_ request: HTTPRequest) throws(CollectorRefusal) -> Bool {
    guard let senders else { return false }
    let isRight = senders.acceptsNow(request.header("authorization"))
    if isRight == false { throw wrongToken(request, wrongTokens, "the bearer token is missing or wrong") }
    return isRight ?? false
  }

  /// Whether the head's token proves the sender.
  func provesNow(_ request: HTTPRequest) -> Bool { senders?.acceptsNow(request.header("authorization")) ?? false }

  /// A right token is taken however many wrong ones its address sent: a stranger behind the same address locks no device out.
  private func wrongToken(_ request: HTTPRequest, _ limit: SignInLimit, _ message: String) -> CollectorRefusal {
    guard request.header("authorization") != nil else { return CollectorRefusal(401, code: .token, message) }
    guard limit.allows(request.peer.network) else { return Self.tooManyTokens }
    limit.failed(request.peer.network)
    return CollectorRefusal(401, code: .token, message)
  }

  private static let tooManyTokens = CollectorRefusal(
    429, code: .token, "too many tokens were wrong; try again in a minute", retryAfterSeconds: 60)

  /// The verdict of a probe on a sender's token.
  func verdict(on request: HTTPRequest) async -> ProbeAnswer.Verdict {
    guard let senders else { return .notAsked }
    guard let given = request.header("authorization") else { return .missing }
    return await senders.accepts(given) ? .ok : .wrong
  }

  // MARK: Readers

  /// Whether readers need a token. Without tokens they are asked from this machine only.
  var needsReaderToken: Bool { !roles.isEmpty }

  /// Whether the reader's browser talks TLS, to the collector or to a trusted proxy in front.
  func isSecure(_ request: HTTPRequest) -> Bool { servesTLS || request.isForwardedSecurely }

  /// - Throws: 403 for a Host that is no name of the collector.
  func checkHost(_ request: HTTPRequest) throws(CollectorRefusal) {
    guard hosts.allows(request.header("host")) else {
      throw CollectorRefusal(
        403, "the Host is no name of this collector; ask by its address, or list the name under reader.hosts")
    }
  }

  /// - Throws: 403 for a Host that is no name of the collector, 401 without a reader's token.
  func reader(_ request: HTTPRequest) async throws(CollectorRefusal) -> ReaderIdentity {
    try checkHost(request)
    if let header = request.header("authorization") {
      for (role, tokens) in roles {
        if let token = await tokens.token(of: header) { return ReaderIdentity(role: role, token) }
      }
    } else if let session = ReaderSession(request, isSecure: isSecure(request)),
      let tokens = roles.first(where: { $0.role == session.role })?.tokens,
      let token = await session.token(of: tokens, now: time.unixMilliseconds),
      try await !endedSessions.contains(session)
    {
      return ReaderIdentity(role: session.role, token, session: session)
    } else if !needsReaderToken, request.peer.isLocal, HostCheck.isLocal(request.header("host")) {
      return isTrial ? .trial : .local
    }
    if let subject = try await assertion?.subject(request, now: time.unixMilliseconds) {
      for (role, tokens) in roles {
        guard let namespaces = await tokens.namespaces(ofSubject: subject) else { continue }
        return ReaderIdentity(role: role, namespaces, name: subject, subject: subject)
      }
      throw CollectorRefusal(403, "the reader that the proxy names is in no readers' file: add the line subject:NAME")
    }
    let fault =
      needsReaderToken ? "is missing or wrong" : "is of no use: no file of tokens is configured; ask here without one"
    throw wrongToken(request, signIns, "the reader's bearer token \(fault)")
  }

  /// Begins a session for a token. - Throws: 401 for a wrong token, 429 after too many.
  func signIn(_ token: String, from peer: HTTPPeer) async throws(CollectorRefusal) -> ReaderIdentity {
    guard signIns.allows(peer.network) else { throw Self.tooManyTokens }
    for (role, tokens) in roles {
      let now = time.unixMilliseconds
      if let session = await ReaderSession.begin(role, token: token, of: tokens, now: now),
        let known = await session.token(of: tokens, now: now)
      {
        return ReaderIdentity(role: role, known, session: session)
      }
    }
    signIns.failed(peer.network)
    throw CollectorRefusal(401, code: .token, "this is no reader's token of this collector")
  }

  /// - Throws: 403 if the request is not from this machine, or asks by another name.
  func checkLocal(_ request: HTTPRequest) throws(CollectorRefusal) {
    guard request.peer.isLocal, HostCheck.isLocal(request.header("host")) else {
      throw CollectorRefusal(403, "metrics are shown to this machine only, and at the reader's address")
    }
  }
}
