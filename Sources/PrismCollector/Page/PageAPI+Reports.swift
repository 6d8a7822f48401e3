import PrismHTTP
import PrismProtocol

// Reports: pages of them, one, its payload.
extension PageAPI {
  /// - Throws: 503 for a store that answers no questions of the page.
  var scan: ReportScan {
    get throws(CollectorRefusal) {
      guard let queries = collector.store.queries else {
        throw CollectorRefusal(503, "this store answers no questions of the page")
      }
      return ReportScan(queries: queries, time: collector.time)
    }
  }

  /// Runs a question within the bound of all. - Throws: 503 where the store can't be read.
  func ask<Result: Sendable>(
    _ body: () async throws(StoreFailure) -> Result
  ) async throws(CollectorRefusal) -> Result {
    try await collector.access.page.reading.run { () throws(CollectorRefusal) in
      do throws(StoreFailure) { return try await body() } catch { throw CollectorRefusal.unreadable }
    }
  }

  /// The filter of a request, without what is not the filter's.
  func filter(_ request: PageRequest) throws(CollectorRefusal) -> ReportFilter {
    var http = request.http
    let known = PageRoutes.filter + ["after", "before", "order"]
    http.query = http.query.filter { known.contains($0.name) && !$0.value.isEmpty }
    let kinds = RowKind.reports.map(\.name)
    if let kind = http.parameter("kind"), !kinds.contains(kind) {
      throw CollectorRefusal(400, "kind: is `\(kind.prefix(32))`, must be one of \(kinds.joined(separator: ", "))")
    }
    return try ReportFilter(http)
  }

  /// `GET /reports`: newest first unless `order=oldest`.
  func reports(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    var wanted = try filter(request)
    wanted.limit = try request.number("limit", in: 1...1000) ?? 100
    wanted.isNewestFirst = request.http.parameter("order") != "oldest"
    let page = try await page(wanted)
    return Self.reports(page.reports, next: page.next.map { .int($0) } ?? .null, reach: page.reach)
  }

  /// The first reports of the filter, in its order.
  func page(_ wanted: ReportFilter) async throws(CollectorRefusal) -> ReportPage {
    let (scan, store) = (try scan, collector.store)
    return try await ask { () throws(StoreFailure) in try await scan.page(wanted, of: store) }
  }

  private static func reports(_ page: [StoredReport], next: JSONValue, reach: ReportScan.Reach) -> HTTPResponse {
    var body = Array(#"{"reports":["#.utf8)
    for (index, report) in page.enumerated() {
      if index > 0 { body.append(UInt8(ascii: ",")) }
      body += report.jsonText
    }
    body += Array("],\"next\":\(next.text),\"readSince\":\(since(reach).text)}\n".utf8)
    return HTTPResponse(status: 200, headers: [("Content-Type", "application/json")], body: body)
  }

  /// null: everything was read.
  static func since(_ reach: ReportScan.Reach) -> JSONValue { reach.since.map { .int($0) } ?? .null }

  /// `GET /reports/{id}`
  func report(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let found = try await found(request)
    return HTTPResponse(
      status: 200, headers: [("Content-Type", "application/json")], body: found.jsonText + [UInt8(ascii: "\n")])
  }

  /// `GET /reports/{id}/payload`: always a file, of any content.
  func payload(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let found = try await found(request)
    guard let payload = found.payload else {
      throw CollectorRefusal(404, "this report has no payload, or it is damaged")
    }
    return HTTPResponse(
      status: 200,
      headers: [
        ("Content-Type", "application/octet-stream"),
        ("Content-Disposition", "attachment; filename=\"report-\(found.id).bin\""),
      ], body: payload)
  }

  private func found(_ request: PageRequest) async throws(CollectorRefusal) -> StoredReport {
    let store = collector.store
    guard let id = request.parts.first.flatMap({ Int64($0) }) else {
      throw CollectorRefusal(404, "a report's id is a whole number")
    }
    guard let found = try await ask({ () throws(StoreFailure) in try await store.report(id) }) else {
      throw CollectorRefusal(404, "there is no report of this id; retention may have deleted it")
    }
    return found
  }

  /// `GET /types`
  func types(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let queries = try scan.queries
    let types = try await ask { () throws(StoreFailure) in try await queries.types(limit: 1000) }
    return Self.json([
      "types": .array(types.map { ["namespace": .string($0.namespace), "type": .string($0.type)] })
    ])
  }
}
