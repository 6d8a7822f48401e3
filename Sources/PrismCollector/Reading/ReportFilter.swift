import PrismBase
import PrismHTTP
import PrismProtocol

/// Which reports are wanted, and how many.
struct ReportFilter: Sendable, Equatable {
  static let limits = 1...1000

  /// The namespaces of the one who asks.
  let scope: Scope

  /// The time of a report by which it is found and counted.
  enum Axis: String, Sendable {
    /// When it was made, corrected by the clock of its device; when it was received, if it has no such time.
    case created
    case received
  }

  var namespace: String?
  var type: String?
  var device: String?
  var kind: String?
  /// Their time, milliseconds since 1970: from `since`, before `until`.
  var since: Int64?, until: Int64?
  var axis = Axis.created
  /// Conditions on fields of the meta, all of which must hold.
  var metas: [MetaCondition] = []
  /// Only reports behind this one.
  var after: Int64 = 0
  /// Only reports in front of this one.
  var before: Int64?
  /// From the newest to the oldest; else the other way.
  var isNewestFirst = false
  var limit = 100
  /// For outputs; readers ask for one payload at a time.
  var hasPayloads = false

  /// All reports behind an id, with their payloads.
  static func forOutput(after id: Int64, _ limit: Int) -> ReportFilter {
    var filter = ReportFilter(scope: .everything)
    (filter.after, filter.limit, filter.hasPayloads) = (id, limit, true)
    return filter
  }

  /// Of the reports that are wanted; nil: no report is between `after` and `before`.
  var ids: ClosedRange<Int64>? {
    let last = (before ?? .max) - 1
    return after < last ? after + 1...last : nil
  }

  /// Whether it wants a time. A bound that is not given bounds nothing: a device's time may be any number.
  @inline(__always) func wants(_ time: Int64) -> Bool { time >= since ?? .min && until.map { time < $0 } ?? true }

  func mayWant(_ times: ClosedRange<Int64>) -> Bool {
    times.upperBound >= since ?? .min && until.map { times.lowerBound < $0 } ?? true
  }

  /// Whether it wants reports of such a sender.
  func wants(_ device: String, _ namespace: String, _ kind: String) -> Bool {
    scope.has(namespace) && (self.device ?? device) == device && (self.namespace ?? namespace) == namespace
      && (self.kind ?? kind) == kind
  }
}

extension ReportFilter {
  private static let parameters = [
    "namespace", "type", "device", "kind", "since", "until", "time", "meta", "after", "before", "order", "limit",
  ]

  /// Reads the query of `GET /reports`. - Throws: 400 naming the parameter.
  init(_ request: HTTPRequest, _ scope: Scope) throws(CollectorRefusal) {
    self.init(scope: scope)
    try request.checkParameters(Self.parameters)
    (namespace, type) = (request.parameter("namespace"), request.parameter("type"))
    (device, kind) = (request.parameter("device"), try Self.kind(request.parameter("kind")))
    (since, until) = (try Self.time("since", request), try Self.time("until", request))
    if let since, let until, since >= until { throw CollectorRefusal(400, "until: must be later than since") }
    switch request.parameter("time") {
    case nil: break
    case let name?:
      guard let known = Axis(rawValue: name) else { throw CollectorRefusal(400, "time: must be created or received") }
      axis = known
    }
    metas = try MetaCondition.all("meta", request)
    after = try Self.number("after", request) ?? 0
    before = try Self.number("before", request)
    switch request.parameter("order") {
    case nil, "oldest": break
    case "newest": isNewestFirst = true
    default: throw CollectorRefusal(400, "order: must be oldest or newest")
    }
    limit = Int(clamping: try Self.number("limit", request) ?? 100)
    guard Self.limits.contains(limit) else {
      throw CollectorRefusal(
        400, "limit: is \(limit), must be \(Self.limits.lowerBound) to \(Self.limits.upperBound)")
    }
  }

  /// - Throws: 400 for another word.
  static func kind(_ word: String?) throws(CollectorRefusal) -> String? {
    let kinds = RowKind.reports.map(\.name)
    guard let word, !kinds.contains(word) else { return word }
    throw CollectorRefusal(400, "kind: is `\(word.prefix(32))`, must be one of \(kinds.joined(separator: ", "))")
  }

  private static func time(_ name: String, _ request: HTTPRequest) throws(CollectorRefusal) -> Int64? {
    let value = try number(name, request)
    guard let value, 1_000_000_000..<100_000_000_000 ~= value else { return value }
    throw CollectorRefusal(400, "\(name): \(value) are seconds; give milliseconds since 1970: \(value)000")
  }

  private static func number(_ name: String, _ request: HTTPRequest) throws(CollectorRefusal) -> Int64? {
    guard let text = request.parameter(name) else { return nil }
    guard let value = Int64(text), value >= 0 else {
      throw CollectorRefusal(400, "\(name): must be a whole number, 0 or more")
    }
    return value
  }
}

extension MetaCondition {
  /// The conditions of a parameter, which may come several times. - Throws: 400 naming it.
  static func all(_ name: String, _ request: HTTPRequest) throws(CollectorRefusal) -> [MetaCondition] {
    let texts = request.query.filter { $0.name == name }.map(\.value)
    guard texts.count <= countMax else {
      throw CollectorRefusal(400, "\(name): \(texts.count) conditions, at most \(countMax) are taken")
    }
    var conditions: [MetaCondition] = []
    for text in texts {
      do throws(Fault) { conditions.append(try MetaCondition(text)) } catch {
        throw CollectorRefusal(400, "\(name): a condition \(error.reason); write it as KEY.KEY >= VALUE")
      }
    }
    return conditions
  }
}

extension HTTPRequest {
  /// A parameter with a typing error would be left out of the question, and the answer be one to another question. A change
  /// with an empty one, of a variable that is not set, would be one of everything.
  /// - Throws: 400 for a parameter that is not among `known`, with the nearest one, and for an empty one of a change.
  func checkParameters(_ known: [String]) throws(CollectorRefusal) {
    if method != .get, let empty = query.first(where: { $0.value.isEmpty && known.contains($0.name) }) {
      throw CollectorRefusal(400, "\(empty.name): is empty; leave it out if all are wanted")
    }
    guard let unknown = query.map(\.name).first(where: { !known.contains($0) }) else { return }
    let hint = NearestName.of(unknown, among: known).map { "; did you mean `\($0)`?" } ?? "."
    let others = known.isEmpty ? "No parameter is taken" : "There are \(known.joined(separator: ", "))"
    throw CollectorRefusal(400, "`\(unknown.prefix(64))` is no parameter here\(hint) \(others)")
  }
}
