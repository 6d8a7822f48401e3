public import PrismProtocol

/// The settings that a client's `hello` makes for the rest of its connection (docs/ingest-protocol.md).
public struct Greeting: Sendable, Equatable {
  /// Common information of the app, at most `Limits.commonValueBytesMax` a value.
  public var app: [String: String] = [:]
  /// How reports are answered. Default: `each`.
  public var answer = AnswerMode.each
  /// Default: the connection.
  public var session = SessionScope.connection
  /// Its session is not counted yet.
  var isNew = false

  /// Of a connection that has not greeted.
  public init() {}

  /// - Parameter app: checked already.
  init(_ app: [String: String]) { self.app = app }

  /// - Parameter object: the value of `hello`.
  /// - Parameter configured: the keys under `common`, which a client may set too.
  /// - Throws: `bad_request`, naming the key and what is allowed.
  public init(_ object: Span<UInt8>, configured: [String: String]) throws(Refusal) {
    let value: JSONValue
    do { value = try JSONValue(parsing: object) } catch { throw Refusal(.badRequest, "`hello`: \(error.reason)") }
    isNew = true
    for member in value.object ?? [] {
      switch member.key {
      case "app": app = try Self.app(member.value, configured: configured)
      case "answer":
        guard let mode = member.value.string.flatMap(AnswerMode.init) else {
          throw Refusal(.badRequest, "`hello.answer` must be \"each\" or \"cumulative\"")
        }
        answer = mode
      case "session": session = try SessionScope(member.value)
      default:
        throw Refusal(.badRequest, "unknown field `hello.\(member.key.prefix(64))`; known are app, answer, session")
      }
    }
  }

  private static func app(_ value: JSONValue, configured: [String: String]) throws(Refusal) -> [String: String] {
    guard let members = value.object else { throw Refusal(.badRequest, "`hello.app` must be an object") }
    var app: [String: String] = [:]
    for member in members {
      let name = "`hello.app.\(member.key.prefix(64))`"
      guard CommonInformation.appKeys.contains(member.key) || configured[member.key] != nil else {
        let known = CommonInformation.appKeys.union(configured.keys).sorted().joined(separator: ", ")
        throw Refusal(.badRequest, "\(name) is not taken from a client; known are: \(known)")
      }
      guard let text = member.value.string else { throw Refusal(.badRequest, "\(name) must be a string") }
      guard text.utf8.count <= Limits.commonValueBytesMax else {
        throw Refusal(
          .badRequest, "\(name) has \(text.utf8.count) bytes; at most \(Limits.commonValueBytesMax) are allowed")
      }
      app[member.key] = text
    }
    return app
  }
}

/// How the reports of a connection are answered.
public enum AnswerMode: String, Sendable {
  /// One line a report.
  case each
  /// One line for all that a commit covered, with refusals listed.
  case cumulative
}

/// One use of the app (docs/sessions.md).
public enum SessionScope: Sendable, Equatable {
  /// The connection is a session, or no session is open: `true` and `false`.
  case connection, off
  /// All connections of the user that name it are one session.
  case named(String)

  init(_ value: JSONValue) throws(Refusal) {
    switch value {
    case .bool(let isOn): self = isOn ? .connection : .off
    case .string(let id) where ReportID(id) != nil: self = .named(id)
    default:
      throw Refusal(.badRequest, "`hello.session` must be true, false, or an id of 1 to 64 of A-Z a-z 0-9 _ -")
    }
  }
}
