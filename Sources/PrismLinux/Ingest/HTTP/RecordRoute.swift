import PrismAdmission
import PrismBase
import PrismProtocol

/// A request over HTTP about records (docs/records.md, "Over HTTP"), translated into the line protocol: so both have the
/// same answers and refusals. Pure.
struct RecordRoute {
  /// A put of the largest fields, with white space.
  static let bodyBytesMax = Limits.scannedBytesMax
  /// How long a list may wait for a change.
  static let waitSecondsMax = 60

  private let verb: RecordVerb
  /// The members of the request but for `fields`.
  private var members: [JSONValue.Member]
  /// Of `If-None-Match` with GET: an answer that is still this one is not sent again.
  private(set) var known: Int64?
  /// How long a list that is still the known one waits for a change.
  private(set) var waitSeconds = 0

  /// - Parameter parts: of the path, as they were written. - Throws: 400.
  init(_ verb: RecordVerb, _ head: HTTPHead, _ parts: [String]) throws(HTTPHead.Fault) {
    let names = parts.compactMap(\.strictlyPercentDecoded)
    guard names.count == parts.count, parts.last?.contains("/") == false else {
      throw HTTPHead.Fault(400, "the path must be /v1/records/TABLE or /v1/records/TABLE/ID, each percent-encoded")
    }
    self.verb = verb
    members = zip(["table", "id"], names).map { .init($0, .string($1)) }
    try readQuery(head.query)
    try readConditions(head)
  }

  private mutating func readQuery(_ query: String) throws(HTTPHead.Fault) {
    for part in query.split(separator: "&") {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { String($0) }
      guard pair.count == 2, let key = pair[0].strictlyPercentDecoded, let value = pair[1].strictlyPercentDecoded,
        !members.contains(where: { $0.key == key })
      else { throw HTTPHead.Fault(400, "the query must be KEY=VALUE&…, each key once") }
      switch key {
      case "namespace": members.append(.init(key, .string(value)))
      case "after" where verb == .list: members.append(.init(key, .string(value)))
      case "limit" where verb == .list: members.append(.init(key, .int(try Self.number(key, value))))
      case "wait" where verb == .list:
        waitSeconds = try Self.number(key, value)
        guard (0...Self.waitSecondsMax).contains(waitSeconds) else {
          throw HTTPHead.Fault(400, "`wait` is \(waitSeconds), must be 0 to \(Self.waitSecondsMax) seconds")
        }
      default:
        let known = verb == .list ? "namespace, after, limit, wait" : "namespace"
        throw HTTPHead.Fault(400, "unknown key `\(key.prefix(64))` in the query; known are \(known)")
      }
    }
  }

  private static func number(_ key: String, _ text: String) throws(HTTPHead.Fault) -> Int {
    guard let number = Int(text) else { throw HTTPHead.Fault(400, "`\(key)` must be a whole number") }
    return number
  }

  /// If-Match is the condition of a change; If-None-Match is one, too (`*`), or names the answer that is known.
  private mutating func readConditions(_ head: HTTPHead) throws(HTTPHead.Fault) {
    let isChange = [.put, .patch, .delete].contains(verb)
    if let text = head.ifMatch {
      guard isChange, let condition = Self.condition(text) else {
        throw HTTPHead.Fault(400, "If-Match takes one ETag of a record, or *, with PUT, PATCH and DELETE")
      }
      members.append(.init("ifVersion", condition.json))
    }
    guard let text = head.ifNoneMatch else { return }
    if isChange {
      guard text == "*", head.ifMatch == nil, verb != .delete else {
        throw HTTPHead.Fault(400, "If-None-Match takes * with PUT and PATCH: the record must be new")
      }
      members.append(.init("ifVersion", VersionCondition.absent.json))
    } else {
      // Another program's ETag matches nothing.
      if case .version(let version)? = Self.condition(text) { known = version }
    }
  }

  private static func condition(_ text: String) -> VersionCondition? {
    if text == "*" { return .present }
    let tag = text.hasPrefix("W/") ? text.dropFirst(2) : text[...]
    guard tag.count > 2, tag.first == "\"", tag.last == "\"", let version = Int64(tag.dropFirst().dropLast()),
      version >= 0
    else { return nil }
    return .version(version)
  }

  /// The request as a line. - Throws: 400 if a body is missing, not wanted, or no JSON.
  func line(_ body: [UInt8]) throws(HTTPHead.Fault) -> [UInt8] {
    var members = members
    if verb == .put || verb == .patch {
      let fields: JSONValue
      do { fields = try JSONValue(parsing: body) } catch {
        throw HTTPHead.Fault(400, "the body must be the fields as a JSON object: \(error.reason)")
      }
      members.append(.init("fields", fields))
    } else if !body.isEmpty {
      throw HTTPHead.Fault(400, "this request takes no body")
    }
    return JSONValue.object([.init(verb.rawValue, .object(members))]).bytes + [UInt8(ascii: "\n")]
  }

  /// The table whose changes the request waits for; nil: it does not wait, or names no table.
  var awaited: WatchedTable.Key? {
    func text(_ key: String) -> String? { members.first { $0.key == key }?.value.string }
    guard waitSeconds > 0, known != nil, let namespace = NamespaceName(text("namespace") ?? NamespaceName.prism.text),
      let table = text("table").flatMap({ RecordTableName($0) })
    else { return nil }
    return WatchedTable.Key(namespace: namespace, table: table)
  }
}
