import PrismHTTP
import PrismProtocol

enum PageRoutes {
  static let filter = ["namespace", "type", "device", "kind", "since", "until", "time", "meta"]
  static let place = ["after", "before", "order", "limit"]

  static let all: [PageRoute] = [
    .init(.get, "/session", .everybody, [], PageAPI.session),
    .init(.post, "/session", .everybody, [], PageAPI.signIn),
    .init(.post, "/session/end", .everybody, [], PageAPI.signOut),
    .init(.get, "/fleet", .viewer(.own), [], PageAPI.fleet),
    .init(.get, "/devices", .viewer(.own), ["search", "where", "sort", "after", "limit"], DeviceAPI.devices),
    .init(.get, "/device", .viewer(.own), ["id"], DeviceAPI.device),
    .init(.get, "/outputs/{name}/dead", .viewer(.all), ["after", "limit"], PageAPI.deadLetters),
    .init(.post, "/outputs/{name}/dead", .operator(.all), [], PageAPI.changeDeadLetters),
    .init(.get, "/types", .viewer(.own), [], PageAPI.types),
    .init(.get, "/reports", .viewer(.own), filter + place, PageAPI.reports),
    .init(.get, "/reports/{id}", .viewer(.own), [], PageAPI.report),
    .init(.get, "/reports/{id}/payload", .viewer(.own), [], PageAPI.payload),
    .init(.get, "/histogram", .viewer(.own), filter + ["buckets", "by", "within"], PageAPI.histogram),
    .init(.get, "/aggregate", .viewer(.own), filter + ["buckets", "by", "key", "within"], PageAPI.aggregate),
    .init(.get, "/export", .viewer(.own), filter + ["before", "limit", "format"], PageAPI.export),
    .init(.get, "/tail", .viewer(.own), filter + ["after"], takesTurn: false, PageAPI.tail),
    .init(
      .get, "/crashes", .viewer(.own), ["namespace", "device", "since", "until", "state", "limit"], CrashAPI.crashes),
    .init(.get, "/crashes/{fingerprint}", .viewer(.own), [], CrashAPI.crash),
    .init(.post, "/crashes/{fingerprint}/state", .operator(.own), [], CrashAPI.changeCrash),
    .init(.post, "/crashes/{fingerprint}/group", .operator(.all), [], CrashAPI.regroupCrash),
    .init(.get, "/releases", .viewer(.own), ["namespace", "app", "since", "until"], ReleaseAPI.releases),
    .init(
      .get, "/releases/compare", .viewer(.own), ["namespace", "app", "version", "other", "since", "until"],
      ReleaseAPI.compare),
    .init(.get, "/symbols", .viewer(.own), [], SymbolAPI.list),
    .init(.post, "/symbols", .operator(.all), ["upload", "offset", "size"], SymbolAPI.add),
    .init(.delete, "/symbols/{buildId}", .operator(.all), [], SymbolAPI.remove),
    .init(.get, "/notices", .viewer(.all), ["before", "state", "limit"], NoticeAPI.list),
    .init(.post, "/notices/test", .operator(.all), [], NoticeAPI.test),
    .init(.post, "/notices/{id}", .operator(.all), [], NoticeAPI.change),
    .init(.get, "/jobs", .viewer(.own), [], JobAPI.list),
    .init(.post, "/jobs", .operator(.own), [], JobAPI.start),
    .init(.get, "/jobs/{id}", .viewer(.own), ["progress", "after", "limit"], JobAPI.job),
    .init(.post, "/jobs/{id}", .operator(.own), [], JobAPI.change),
    .init(.get, "/records", .viewer(.own), RecordAPI.parameters, RecordAPI.find),
    .init(.get, RecordAPI.prefix, .viewer(.own), ["device", "field", "after", "limit"], RecordAPI.list),
    .init(.post, RecordAPI.prefix, .operator(.own), ["device", "firstLine"], RecordAPI.changeMany),
    .init(.get, RecordAPI.prefix + "/{+record}", .viewer(.own), ["device"], RecordAPI.get),
    .init(.put, RecordAPI.prefix + "/{+record}", .operator(.own), ["device"], RecordAPI.put),
    .init(.patch, RecordAPI.prefix + "/{+record}", .operator(.own), ["device"], RecordAPI.patch),
    .init(.delete, RecordAPI.prefix + "/{+record}", .operator(.own), ["device"], RecordAPI.delete),
    .init(.get, "/questions/{namespace}/{id}", .viewer(.own), [], QuestionAPI.answer),
    .init(.get, "/rings", .viewer(.own), ["namespace", "device", "type"], QuestionAPI.rings),
    .init(.get, "/erasures", .viewer(.all), [], ErasureAPI.list),
    .init(.post, "/erasures", .operator(.all), [], ErasureAPI.begin),
    .init(.get, "/configuration", .viewer(.all), ["after", "failed", "limit"], RolloutAPI.configuration),
    .init(.post, "/configuration/rollout", .operator(.all), [], RolloutAPI.changeRollout),
  ]
}

/// Answers some paths of the API.
protocol PageAnswers: Sendable {
  init(api: PageAPI)
}

/// One path of the API, and who may ask it. `docs/api.yaml` documents each; a test holds them together.
struct PageRoute: Sendable {
  typealias Handler = @Sendable (PageAPI, PageRequest) async throws(CollectorRefusal) -> HTTPResponse

  enum Access: Sendable, Equatable {
    case everybody
    case viewer(Reach)
    /// Changes something. A session must bring its change token.
    case `operator`(Reach)
    /// Comes over the Unix socket in the state folder.
    case owner
  }

  /// The part of the collector that an answer is about, or that it changes.
  enum Reach: Sendable {
    /// The namespaces of the reader (`PageRequest.scope`).
    case own
    /// All of them: a reader with a list of namespaces gets 403.
    case all
  }

  let method: HTTPRequest.Method
  /// As in `RouteTable`. One of the API is below `/api/v1`.
  let path: String
  let access: Access
  /// Of the query; another one is answered with 400.
  let parameters: [String]
  /// Whether one of the turns of all questions is for it (`PageState.reading`).
  let takesTurn: Bool
  let handler: Handler

  /// - Parameter takesTurn: false: it reads no reports, or waits for what comes, with a bound of its own.
  init<Answers: PageAnswers>(
    _ method: HTTPRequest.Method, _ path: String, _ access: Access, _ parameters: [String], takesTurn: Bool = true,
    _ answer: @escaping @Sendable (Answers) -> (PageRequest) async throws(CollectorRefusal) -> HTTPResponse
  ) {
    (self.method, self.path, self.access, self.parameters) = (method, path, access, parameters)
    self.takesTurn = access != .everybody && takesTurn
    handler = { api, request throws(CollectorRefusal) in try await answer(Answers(api: api))(request) }
  }
}

/// A request of the API: its route matched, its reader known.
struct PageRequest: Sendable {
  let http: HTTPRequest
  /// The values of the parts of the path that the route names in braces.
  let parts: [String]
  /// nil: not signed in, on a route for everybody.
  let reader: ReaderIdentity?

  var scope: Scope { reader?.scope ?? Scope([]) }

  func number<Value: FixedWidthInteger>(
    _ name: String, in range: ClosedRange<Value>
  ) throws(CollectorRefusal) -> Value? { try http.number(name, in: range) }

  /// One word of a parameter. - Throws: 400 for another word.
  func word<Word: RawRepresentable & CaseIterable>(
    _ name: String, _ words: Word.Type
  ) throws(CollectorRefusal) -> Word? where Word.RawValue == String {
    guard let text = http.parameter(name) else { return nil }
    guard let word = Word(rawValue: text) else {
      let known = Word.allCases.map(\.rawValue).joined(separator: ", ")
      throw CollectorRefusal(400, "\(name): is `\(text.prefix(32))`, must be one of \(known)")
    }
    return word
  }

  /// The devices of `where`; nil: all. - Throws: 400 for another expression.
  var devices: DeviceExpression? {
    get throws(CollectorRefusal) {
      guard let text = http.parameter("where") else { return nil }
      return try DeviceExpression.asked(text)
    }
  }
}

extension DeviceExpression {
  /// Of a request's `where`. - Throws: 400 for another text.
  static func asked(_ text: String) throws(CollectorRefusal) -> DeviceExpression {
    do throws(Fault) { return try DeviceExpression(text) } catch {
      throw CollectorRefusal(400, "where: the expression \(error.reason)")
    }
  }
}

/// The form of a member of a change's body.
enum MemberForm: String, Sendable {
  case text = "a text"
  case number = "a number"
  case flag = "true or false"
  case list = "a list"
  case object = "an object"
  /// Its reader says what it takes.
  case any = "a value"

  fileprivate func includes(_ value: JSONValue) -> Bool {
    switch (self, value) {
    case (.any, _), (_, .null), (.text, .string), (.number, .number), (.flag, .bool), (.list, .array),
      (.object, .object):
      true
    default: false
    }
  }
}

// Bodies of changes.
extension PageAPI {
  private static let bodyBytesMax = 65_536

  /// The object that a change brings.
  /// - Throws: 400 for another body, and for a member that is not among `known` or has another form: it would be left out, and
  ///   another change be made.
  static func body(
    _ request: PageRequest, known: KeyValuePairs<String, MemberForm>, bytesMax: Int = bodyBytesMax
  ) throws(CollectorRefusal) -> JSONValue {
    // A form of another origin can't send this type without asking first.
    guard request.http.header("content-type")?.hasPrefix("application/json") == true else {
      throw CollectorRefusal(400, "send a change as application/json")
    }
    guard request.http.body.count <= bytesMax else {
      throw CollectorRefusal(400, "the body has more than \(bytesMax) bytes")
    }
    let body = try object(request)
    for member in body.object ?? [] {
      guard let form = known.first(where: { $0.key == member.key })?.value else {
        let names = known.map(\.key).joined(separator: ", ")
        throw CollectorRefusal(400, "`\(member.key.prefix(64))` is no member here; there are \(names)")
      }
      guard form.includes(member.value) else { throw CollectorRefusal(400, "\(member.key): must be \(form.rawValue)") }
    }
    return body
  }

  /// - Throws: 400 for a body that is no JSON object.
  static func object(_ request: PageRequest) throws(CollectorRefusal) -> JSONValue {
    let body: JSONValue
    do throws(JSONError) { body = try JSONValue(parsing: request.http.body) } catch {
      throw CollectorRefusal(400, "the body is \(error)")
    }
    guard body.object != nil else { throw CollectorRefusal(400, "the body must be a JSON object") }
    return body
  }
}
