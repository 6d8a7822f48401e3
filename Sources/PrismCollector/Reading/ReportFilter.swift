import PrismHTTP
import PrismProtocol

/// Which reports are wanted, and how many.
struct ReportFilter: Sendable, Equatable {
  static let limits = 1...1000

  var namespace: String?
  var type: String?
  var device: String?
  var kind: String?
  /// When they were received, milliseconds since 1970: from `since`, before `until`.
  var since: Int64?, until: Int64?
  /// Only reports behind this one.
  var after: Int64 = 0
  var limit = 100
  /// For outputs; readers ask for one payload at a time.
  var hasPayloads = false
}

extension ReportFilter {
  private static let parameters = ["namespace", "type", "device", "kind", "since", "until", "after", "limit"]

  /// Reads the query of `GET /reports`. - Throws: 400 naming the parameter.
  init(_ request: HTTPRequest) throws(CollectorRefusal) {
    self.init()
    try request.checkParameters(Self.parameters)
    (namespace, type) = (request.parameter("namespace"), request.parameter("type"))
    (device, kind) = (request.parameter("device"), request.parameter("kind"))
    (since, until) = (try Self.number("since", request), try Self.number("until", request))
    after = try Self.number("after", request) ?? 0
    limit = Int(clamping: try Self.number("limit", request) ?? 100)
    guard Self.limits.contains(limit) else {
      throw CollectorRefusal(
        400, "limit: is \(limit), must be \(Self.limits.lowerBound) to \(Self.limits.upperBound)")
    }
  }

  private static func number(_ name: String, _ request: HTTPRequest) throws(CollectorRefusal) -> Int64? {
    guard let text = request.parameter(name) else { return nil }
    guard let value = Int64(text), value >= 0 else {
      throw CollectorRefusal(400, "\(name): must be a whole number, 0 or more")
    }
    return value
  }
}
