import PrismHTTP
import PrismProtocol

// Serves records to their readers: `GET /records` with `namespace` and `table`, or `device`; `id`, `after` and `limit`.
extension Collector {
  func records(_ request: HTTPRequest, _ scope: Scope) async throws(CollectorRefusal) -> HTTPResponse {
    let filter = try RecordFilter(request, scope)
    let page: [CollectedRecord]
    do throws(StoreFailure) { page = try await store.records(filter) } catch { throw CollectorRefusal.unreadable }
    return Self.response(page, next: filter.next(behind: page))
  }

  /// A page as JSON. - Parameter next: the `after` of the following one; nil: there is no further one.
  static func response(_ page: [CollectedRecord], next: Int64?) -> HTTPResponse {
    var body = Array(#"{"records":["#.utf8) + page.map(\.fetchedText).joined(separator: [UInt8(ascii: ",")])
    body += Array("],\"next\":\(next.map { String($0) } ?? "null")}\n".utf8)
    return HTTPResponse(status: 200, headers: [("Content-Type", "application/json")], body: body)
  }
}

extension RecordFilter {
  /// Where the page behind this one begins; nil: it is the last one.
  func next(behind page: [CollectedRecord]) -> Int64? {
    let isLast = page.count < limit && page.reduce(0) { $0 + $1.fields.count } < Self.bytesMax
    return isLast ? nil : page.last?.number
  }

  /// - Throws: 400 naming the parameter that is missing or wrong.
  init(_ request: HTTPRequest, _ scope: Scope) throws(CollectorRefusal) {
    self.init(scope: scope)
    try request.checkParameters(["namespace", "table", "device", "id", "after", "limit"])
    device = request.parameter("device")
    namespace = request.parameter("namespace").flatMap { NamespaceName($0) }
    table = request.parameter("table").flatMap { RecordTableName($0) }
    guard namespace != nil || (device != nil && request.parameter("namespace") == nil) else {
      throw CollectorRefusal(400, "namespace must be the name of a namespace; leave it out only with a device")
    }
    guard table != nil || (device != nil && request.parameter("table") == nil) else {
      throw CollectorRefusal(400, "table must be the name of a table of records; leave it out only with a device")
    }
    if let text = request.parameter("id") {
      guard let id = RecordID(text) else { throw CollectorRefusal(400, "id must be that of a record") }
      self.id = id
    }
    if let text = request.parameter("after") {
      guard let after = Int64(text), after >= 0 else { throw CollectorRefusal(400, "after must be a whole number") }
      self.after = after
    }
    if let text = request.parameter("limit") {
      guard let limit = Int(text), 1...Self.limitMax ~= limit else {
        throw CollectorRefusal(400, "limit must be 1 to \(Self.limitMax)")
      }
      self.limit = limit
    }
  }
}
