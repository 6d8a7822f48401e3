import PrismHTTP
import PrismOutputs

// Serves reports to their readers: the owner of the state folder over its Unix socket, and holders of a reader's token
// at the reader's address. A sender's token reads nothing.
extension Collector {
  /// - Parameter isOwner: it came over the Unix socket, which only the owner can open.
  func answerReader(_ request: HTTPRequest, isOwner: Bool) async -> HTTPResponse {
    if PageAPI.owns(request.path) { return await PageAPI(self).answer(request, isOwner: isOwner) }
    var reader: ReaderIdentity?
    do throws(CollectorRefusal) {
      let asked = isOwner ? .owner : try await access.reader(request)
      reader = asked
      if isOwner, request.path == CarriedIntake.path { return await CarriedIntake(self).answer(request) }
      guard request.method == .get else { throw .notAllowed(request.method, but: [.get]) }
      let answer = try await ReadingAnswers(collector: self, reader: asked).answer(request)
      access.audit?.note(request, by: reader, status: answer.status)
      return answer
    } catch {
      access.audit?.note(request, by: reader, status: error.status)
      return error.response
    }
  }
}

/// The answers beside those of the page.
private struct ReadingAnswers {
  let collector: Collector
  let reader: ReaderIdentity

  func answer(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    switch request.path {
    case "/metrics":
      try reader.check(.all)
      return await collector.metricsPage()
    case "/healthz", "/readyz": return await collector.health(request)
    default:
      return try await collector.access.page.reading.inTurn { () throws(CollectorRefusal) in try await ask(request) }
    }
  }

  private func ask(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    switch request.path {
    case "/reports": return try await reports(request)
    case "/records": return try await collector.records(request, reader.scope)
    case let path where path.hasPrefix("/reports/"):
      return try await report(path.dropFirst("/reports/".count))
    case "/devices":
      try reader.check(.all)
      return try await collector.devices(request)
    default: throw Self.nothingThere
    }
  }

  static let nothingThere = CollectorRefusal(
    404,
    "there is nothing at this path; there are /, /api/v1 (docs/api.yaml), /reports, /reports/ID, /reports/ID/payload, /records, /devices, /metrics, /healthz"
  )

  private func reports(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let filter = try ReportFilter(request, reader.scope)
    let scan = ReportScan(queries: collector.store.queries, time: collector.time)
    do throws(StoreFailure) { return try await scan.page(filter, collector.store.page).answer } catch {
      throw CollectorRefusal.unreadable
    }
  }

  /// - Parameter path: `ID` or `ID/payload`.
  private func report(_ path: Substring) async throws(CollectorRefusal) -> HTTPResponse {
    let parts = path.split(separator: "/", omittingEmptySubsequences: false)
    guard let id = parts.first.flatMap({ Int64($0) }), parts.count == 1 || parts.dropFirst() == ["payload"] else {
      throw Self.nothingThere
    }
    var found: StoredReport?
    do throws(StoreFailure) { found = try await collector.store.report(id, reader.scope) } catch {
      throw CollectorRefusal.unreadable
    }
    guard let found else { throw CollectorRefusal(404, "there is no report of this id") }
    return try parts.count == 1 ? .json(found.jsonText) : found.payloadAnswer()
  }
}

extension CollectorRefusal {
  /// - Parameter cause: what the database says.
  static func unavailable(_ cause: String) -> CollectorRefusal {
    CollectorRefusal(503, "the collector's database can't be used: \(cause)", retryAfterSeconds: 5)
  }

  static let unreadable = CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)
}
