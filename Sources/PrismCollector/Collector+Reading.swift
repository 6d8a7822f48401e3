import PrismHTTP
import PrismOutputs

extension Collector {
  /// Answers the owner of the state folder over its Unix socket, and holders of a reader's token at the reader's address. A
  /// sender's token reads nothing.
  /// - Parameter isOwner: it came over the Unix socket, which only the owner can open.
  func answerReader(_ request: HTTPRequest, isOwner: Bool) async -> HTTPResponse {
    await PageAPI(self).answer(request, isOwner: isOwner)
  }
}

extension PageAPI {
  func answer(_ request: HTTPRequest, isOwner: Bool) async -> HTTPResponse {
    var response: HTTPResponse
    do throws(CollectorRefusal) {
      if !isOwner { try collector.access.checkHost(request) }
      let found = ReaderRoute.table.find(request.method, request.path)
      let (route, parts) = try found.mapError(CollectorRefusal.init).get()
      switch route {
      case .file(let file): return file.answer(request)
      case .question(let question): response = try await call(question, request, parts, isOwner: isOwner)
      }
    } catch { response = request.path.hasPrefix(Self.prefix) ? error.problem : error.response }
    response.headers += Self.headers
    return response
  }

  fileprivate func metrics(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    await collector.metricsPage()
  }

  fileprivate func health(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    await collector.health(request.http)
  }
}

/// The file or the question of a path at the reader's address.
enum ReaderRoute: Sendable {
  case file(PageFile)
  case question(PageRoute)

  /// Beside the page and its API, for programs: docs/collector.md, "Reading".
  private static let plain: [PageRoute] = [
    .init(.get, "/reports", .viewer(.own), PageRoutes.filter + PageRoutes.place, PageAPI.oldestReports),
    .init(.get, "/reports/{id}", .viewer(.own), [], PageAPI.report),
    .init(.get, "/reports/{id}/payload", .viewer(.own), [], PageAPI.payload),
    .init(.get, "/records", .viewer(.own), RecordAPI.parameters, RecordAPI.find),
    .init(.get, "/devices", .viewer(.all), ["failed", "after", "limit"], RolloutAPI.devices),
    .init(.get, "/metrics", .viewer(.all), [], takesTurn: false, PageAPI.metrics),
    .init(.get, "/healthz", .viewer(.own), [], takesTurn: false, PageAPI.health),
    .init(.get, "/readyz", .viewer(.own), [], takesTurn: false, PageAPI.health),
    .init(.post, CarriedIntake.path, .owner, [], takesTurn: false, CarriedIntake.answer),
  ]

  static let table = RouteTable<ReaderRoute>(
    PageFiles.all.map { .init(.get, $0.path, .file($0)) }
      + PageRoutes.all.map { .init($0.method, PageAPI.prefix + $0.path, .question($0)) }
      + plain.map { .init($0.method, $0.path, .question($0)) },
    hint: "there are /, \(PageAPI.prefix) (docs/api.yaml), "
      + plain.filter { $0.access != .owner }.map(\.path).joined(separator: ", "))
}
