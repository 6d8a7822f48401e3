import PrismBase
import PrismHTTP
import PrismProtocol

// Signing in and out.
extension PageAPI {
  private static let bodyBytesMax = 4096

  /// `GET /session`: who is signed in; what a client needs for changes.
  func session(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    Self.json(Self.described(request.reader, needsToken: collector.access.needsReaderToken))
  }

  private static func described(_ reader: ReaderIdentity?, needsToken: Bool) -> JSONValue {
    [
      "signedIn": .bool(reader != nil), "needsToken": .bool(needsToken),
      "role": reader.map { .string($0.role.rawValue) } ?? .null, "name": reader.map { .string($0.name) } ?? .null,
      "changeToken": reader?.session.map { .string($0.changeToken) } ?? .null,
      "expires": reader?.session.map { .int($0.expires * 1000) } ?? .null,
      "version": .string(PrismVersion.current),
    ]
  }

  /// `POST /session` with `{"token": …}`: begins a session.
  func signIn(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    // A form of another origin can't send this type without asking first.
    guard request.http.header("content-type")?.hasPrefix("application/json") == true else {
      throw CollectorRefusal(400, "send the token as application/json: {\"token\": \"…\"}")
    }
    guard request.http.body.count <= Self.bodyBytesMax,
      let token = (try? JSONValue(parsing: request.http.body))?["token"]?.string, !token.isEmpty
    else { throw CollectorRefusal(400, "the body must be {\"token\": \"…\"}") }
    let reader = try await collector.access.signIn(token, from: request.http.peer)
    collector.log.info(
      "a reader signed in at the page", ["who": reader.name, "address": request.http.peer.address])
    let cookie = reader.session?.header(isSecure: collector.options.tls != nil)
    return Self.json(Self.described(reader, needsToken: true), headers: [cookie].compactMap { $0 })
  }

  /// `POST /session/end`: the session ends, here and at all replicas, and the browser forgets it.
  func signOut(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    if let reader = request.reader {
      try Self.checkChange(request.http, reader)
      if let session = reader.session { try await collector.access.endedSessions.end(session) }
    }
    let cookie = ReaderSession.endingHeader(isSecure: collector.options.tls != nil)
    return Self.json(Self.described(nil, needsToken: collector.access.needsReaderToken), headers: [cookie])
  }
}
