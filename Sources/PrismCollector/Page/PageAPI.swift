import PrismBase
import PrismHTTP
package import PrismProtocol

/// Answers the page and its API at the reader's address (docs/page.md).
struct PageAPI: PageAnswers {
  static let prefix = "/api/v1"

  let collector: Collector
  /// Over all reports.
  var scan: ReportScan

  init(_ collector: Collector) {
    self.collector = collector
    scan = ReportScan(queries: collector.store.queries, time: collector.time)
  }
  init(api: PageAPI) { self = api }

  /// An answer of the API is data: no browser may take it for a page, or keep it.
  static let headers: [(name: String, value: String)] = [
    ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Resource-Policy", "same-origin"),
  ]

  /// Answers a question.
  /// - Parameters:
  ///   - parts: of its path.
  ///   - isOwner: it came over the Unix socket.
  func call(
    _ route: PageRoute, _ request: HTTPRequest, _ parts: [String], isOwner: Bool
  ) async throws(CollectorRefusal) -> HTTPResponse {
    let reader = try await reader(request, route.access, isOwner: isOwner)
    let record = route.path.hasSuffix("{+record}") ? parts.last : nil
    let audit = route.access == .owner ? nil : collector.access.audit
    do throws(CollectorRefusal) {
      try Self.check(route.access, request, reader)
      try request.checkParameters(route.parameters)
      // Forms name each of their fields, also one that is left empty.
      var given = request
      given.query.removeAll { $0.value.isEmpty }
      let asked = PageRequest(http: given, parts: parts, reader: reader)
      let answer =
        route.takesTurn
        ? try await collector.access.page.reading.inTurn { () throws(CollectorRefusal) in
          await collector.access.page.followErasures(now: collector.time.uptime)
          return try await route.handler(self, asked)
        } : try await route.handler(self, asked)
      audit?.note(request, record: record, by: reader, status: answer.status)
      return answer
    } catch {
      audit?.note(request, record: record, by: reader, status: error.status)
      throw error
    }
  }

  private func reader(
    _ request: HTTPRequest, _ access: PageRoute.Access, isOwner: Bool
  ) async throws(CollectorRefusal) -> ReaderIdentity? {
    if isOwner { return .owner }
    guard access != .everybody else { return try? await collector.access.reader(request) }  // not signed in: nil
    return try await collector.access.reader(request)
  }

  /// - Throws: 403 for what the reader may not do.
  private static func check(
    _ access: PageRoute.Access, _ request: HTTPRequest, _ reader: ReaderIdentity?
  ) throws(CollectorRefusal) {
    guard let reader, reader != .owner else { return }
    switch access {
    case .everybody: return
    case .owner: throw CollectorRefusal(403, "only the owner of the state folder does this, over its socket")
    case .viewer(let reach): try reader.check(reach)
    case .operator(let reach):
      guard reader.role == .operator else {
        throw CollectorRefusal(403, "this changes something: sign in with a token of operatorTokenFile")
      }
      try checkChange(request, reader)
      try reader.check(reach)
    }
  }

  /// - Throws: 403 without the reader's change token.
  static func checkChange(_ request: HTTPRequest, _ reader: ReaderIdentity) throws(CollectorRefusal) {
    guard let token = reader.changeToken else {
      // No token keeps the pages of other origins from changing something at a collector for trying.
      guard reader != .trial || ["same-origin", nil].contains(request.header("sec-fetch-site")) else {
        throw CollectorRefusal(403, "a change from a page of another origin is not taken")
      }
      return
    }
    let given = Array((request.header("x-prism-change") ?? "").utf8)
    guard !token.isEmpty, TokenAuthenticator.areEqual(given, Array(token.utf8)) else {
      throw CollectorRefusal(403, "a change needs X-Prism-Change with the changeToken of GET /api/v1/session")
    }
  }

  // MARK: Answers

  static func json(_ members: KeyValuePairs<String, any ControlValue>) -> HTTPResponse { json(of: JSONValue(members)) }

  static func json(of value: JSONValue, headers: [(name: String, value: String)] = []) -> HTTPResponse {
    HTTPResponse(status: 200, contentType: "application/json", headers: headers, text: value.text + "\n")
  }

  /// A line of the log for each change: who did what, to what.
  func note(_ request: PageRequest, did what: String, to object: String) {
    collector.log.info(
      "changed by an operator",
      ["who": request.reader?.name ?? "", "address": request.http.peer.address, "did": what, "object": object])
  }
}

extension JSONValue {
  /// In the order of the names.
  init(byName members: [String: some ControlValue]) {
    self = .object(members.sorted { $0.key < $1.key }.map { Member($0.key, $0.value.controlJSON) })
  }

  /// An object with further members.
  package func adding(_ members: KeyValuePairs<String, any ControlValue>) -> JSONValue {
    .object((object ?? []) + (JSONValue(members).object ?? []))
  }
}
