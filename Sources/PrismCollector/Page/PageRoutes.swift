import PrismHTTP
import PrismProtocol

/// All paths of the API.
enum PageRoutes {
  static let filter = ["namespace", "type", "device", "kind", "since", "until", "time", "meta"]

  static let all: [PageRoute] = [
    .init(.get, "/session", .everybody, [], PageAPI.session),
    .init(.post, "/session", .everybody, [], PageAPI.signIn),
    .init(.post, "/session/end", .everybody, [], PageAPI.signOut),
    .init(.get, "/fleet", .viewer, [], PageAPI.fleet),
    .init(.get, "/devices", .viewer, ["search", "where", "sort", "after", "limit"], DeviceAPI.devices),
    .init(.get, "/device", .viewer, ["id"], DeviceAPI.device),
    .init(.get, "/outputs/{name}/dead", .viewer, ["after", "limit"], PageAPI.deadLetters),
    .init(.post, "/outputs/{name}/dead", .operator, [], PageAPI.changeDeadLetters),
    .init(.get, "/types", .viewer, [], PageAPI.types),
    .init(.get, "/reports", .viewer, filter + ["after", "before", "order", "limit"], PageAPI.reports),
    .init(.get, "/reports/{id}", .viewer, [], PageAPI.report),
    .init(.get, "/reports/{id}/payload", .viewer, [], PageAPI.payload),
    .init(.get, "/histogram", .viewer, filter + ["buckets", "by"], PageAPI.histogram),
    .init(.get, "/aggregate", .viewer, filter + ["buckets", "by", "key"], PageAPI.aggregate),
    .init(.get, "/export", .viewer, filter + ["before", "limit", "format"], PageAPI.export),
    .init(.get, "/tail", .viewer, filter + ["after"], PageAPI.tail),
    .init(
      .get, "/crashes", .viewer, ["namespace", "device", "since", "until", "state", "limit"], CrashAPI.crashes),
    .init(.get, "/crashes/{fingerprint}", .viewer, [], CrashAPI.crash),
    .init(.post, "/crashes/{fingerprint}/state", .operator, [], CrashAPI.changeCrash),
    .init(.post, "/crashes/{fingerprint}/group", .operator, [], CrashAPI.regroupCrash),
    .init(.get, "/releases", .viewer, ["namespace", "app", "since", "until"], ReleaseAPI.releases),
    .init(
      .get, "/releases/compare", .viewer, ["namespace", "app", "version", "other", "since", "until"],
      ReleaseAPI.compare),
    .init(.get, "/symbols", .viewer, [], SymbolAPI.list),
    .init(.post, "/symbols", .operator, ["upload", "offset", "size"], SymbolAPI.add),
    .init(.delete, "/symbols/{buildId}", .operator, [], SymbolAPI.remove),
    .init(.get, "/notices", .viewer, ["before", "state", "limit"], NoticeAPI.list),
    .init(.post, "/notices/test", .operator, [], NoticeAPI.test),
    .init(.post, "/notices/{id}", .operator, [], NoticeAPI.change),
    .init(
      .get, "/records", .viewer, ["namespace", "table", "device", "id", "field", "after", "limit"], RecordAPI.find),
    .init(.get, RecordAPI.prefix, .viewer, ["device", "field", "after", "limit"], RecordAPI.list),
    .init(.post, RecordAPI.prefix, .operator, ["device", "firstLine"], RecordAPI.changeMany),
    .init(.get, RecordAPI.prefix + "/{record}", .viewer, ["device"], RecordAPI.get),
    .init(.put, RecordAPI.prefix + "/{record}", .operator, ["device"], RecordAPI.put),
    .init(.patch, RecordAPI.prefix + "/{record}", .operator, ["device"], RecordAPI.patch),
    .init(.delete, RecordAPI.prefix + "/{record}", .operator, ["device"], RecordAPI.delete),
    .init(.get, "/questions/{namespace}/{id}", .viewer, [], QuestionAPI.answer),
    .init(.get, "/configuration", .viewer, ["after", "failed", "limit"], RolloutAPI.configuration),
    .init(.post, "/configuration/rollout", .operator, [], RolloutAPI.changeRollout),
  ]
}

/// Answers some paths of the API.
protocol PageAnswers: Sendable {
  init(api: PageAPI)
}

/// One path of the API, and who may ask it. `docs/api.yaml` documents each; a test holds them together.
struct PageRoute: Sendable {
  typealias Handler = @Sendable (PageAPI, PageRequest) async throws(CollectorRefusal) -> HTTPResponse

  enum Access: Sendable {
    case everybody, viewer
    /// Changes something. A session must bring its change token.
    case `operator`
  }

  let method: HTTPRequest.Method
  /// Below `/api/v1`; a part in braces takes any text without a slash, but `{record}` at the end takes any text.
  let path: String
  let access: Access
  /// Of the query; another one is answered with 400.
  let parameters: [String]
  let handler: Handler

  init<Answers: PageAnswers>(
    _ method: HTTPRequest.Method, _ path: String, _ access: Access, _ parameters: [String],
    _ answer: @escaping @Sendable (Answers) -> (PageRequest) async throws(CollectorRefusal) -> HTTPResponse
  ) {
    (self.method, self.path, self.access, self.parameters) = (method, path, access, parameters)
    handler = { api, request throws(CollectorRefusal) in try await answer(Answers(api: api))(request) }
  }

  /// - Returns: the values of the parts in braces; nil: another path.
  func match(_ path: some StringProtocol) -> [String]? {
    let own = self.path.split(separator: "/")
    let isOpen = own.last == "{record}"
    let given = path.dropFirst().split(
      separator: "/", maxSplits: isOpen ? own.count - 1 : Int.max, omittingEmptySubsequences: !isOpen)
    guard own.count == given.count, given.last?.isEmpty != true else { return nil }
    var values: [String] = []
    for (part, value) in zip(own, given) {
      if part.hasPrefix("{") { values.append(String(value)) } else if part != value { return nil }
    }
    return values
  }
}

/// A request of the API: its route matched, its reader known.
struct PageRequest: Sendable {
  let http: HTTPRequest
  /// The values of the parts of the path that the route names in braces.
  let parts: [String]
  /// nil: not signed in, on a route for everybody.
  let reader: ReaderIdentity?

  /// The whole number of a parameter. - Throws: 400 outside of `range`.
  func number<Value: FixedWidthInteger>(
    _ name: String, in range: ClosedRange<Value>
  ) throws(CollectorRefusal) -> Value? {
    guard let text = http.parameter(name), !text.isEmpty else { return nil }
    guard let value = Value(text), range.contains(value) else {
      throw CollectorRefusal(
        400,
        "\(name): is `\(text.prefix(32))`, must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  /// One word of a parameter. - Throws: 400 for another word.
  func word<Word: RawRepresentable & CaseIterable>(
    _ name: String, _ words: Word.Type
  ) throws(CollectorRefusal) -> Word? where Word.RawValue == String {
    guard let text = http.parameter(name), !text.isEmpty else { return nil }
    guard let word = Word(rawValue: text) else {
      let known = Word.allCases.map(\.rawValue).joined(separator: ", ")
      throw CollectorRefusal(400, "\(name): is `\(text.prefix(32))`, must be one of \(known)")
    }
    return word
  }
}

extension PageRequest {
  /// The devices of `where`; nil: all. - Throws: 400 for another expression.
  var devices: DeviceExpression? {
    get throws(CollectorRefusal) {
      guard let text = http.parameter("where"), !text.isEmpty else { return nil }
      do throws(DeviceExpression.Fault) { return try DeviceExpression(text) } catch {
        throw CollectorRefusal(400, "where: the expression \(error.reason)")
      }
    }
  }
}

// Bodies of changes.
extension PageAPI {
  private static let bodyBytesMax = 65_536

  /// The object that a change brings. - Throws: 400 for another body, and for a member that is not among `known`.
  static func body(_ request: PageRequest, known: [String]) throws(CollectorRefusal) -> JSONValue {
    // A form of another origin can't send this type without asking first.
    guard request.http.header("content-type")?.hasPrefix("application/json") == true else {
      throw CollectorRefusal(400, "send a change as application/json")
    }
    guard request.http.body.count <= bodyBytesMax, let body = try? JSONValue(parsing: request.http.body),
      let members = body.object
    else { throw CollectorRefusal(400, "the body must be an object of at most \(bodyBytesMax) bytes") }
    if let unknown = members.first(where: { !known.contains($0.key) }) {
      throw CollectorRefusal(
        400, "`\(unknown.key.prefix(64))` is no member here; there are \(known.joined(separator: ", "))")
    }
    return body
  }
}
