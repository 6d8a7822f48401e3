public import PrismAdmission
public import PrismBase
public import PrismEngine
public import PrismHTTP
import PrismProtocol

/// Serves `/metrics`, `/healthz`, `/readyz` and the pages for people (docs/metrics.md). Costs nothing until it listens.
public actor MetricsServer {
  /// The sources of the pages.
  public struct Sources: Sendable {
    let engine: Engine
    let ingest: @Sendable () async -> IngestCounters
    let remote: @Sendable () async -> RemoteFigures
    let commands: @Sendable () async -> CommandCounts
    let version: String

    public init(
      engine: Engine, version: String, ingest: @escaping @Sendable () async -> IngestCounters,
      remote: @escaping @Sendable () async -> RemoteFigures,
      commands: @escaping @Sendable () async -> CommandCounts = { CommandCounts() }
    ) {
      (self.engine, self.version, self.ingest) = (engine, version, ingest)
      (self.remote, self.commands) = (remote, commands)
    }
  }

  /// If the store does not answer within this time, the page says so and is sent without its figures.
  public static let storeTimeout: Duration = .seconds(2)

  /// Reading `/proc` has a queue of its own.
  private nonisolated let executor = DispatchQueueExecutor(label: "prism.metrics")
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let sources: Sources
  private let log: Logger
  private var server: HTTPServer?
  private var address: String?
  /// That another program had at the start.
  private var awaited: String?
  /// A store that hangs is asked once, however often somebody scrapes.
  private var asking: Task<StoreFigures?, Never>?
  private var status = StatusAnswers()

  public init(_ sources: Sources, log: Logger) { (self.sources, self.log) = (sources, log) }

  /// Shows the status to people from now on.
  public func show(_ handler: ControlHandler) {
    status.show(StatusPages(handler, host: StatusAnswers.machine))
  }

  /// The port on which it listens; 0 if it does not listen.
  public var port: UInt16 { server?.port ?? 0 }

  /// Listens on `address` from now on; stops listening if it is nil.
  /// - Parameter isAtStart: an address that another program has is awaited.
  /// - Throws: then it listens where it did.
  public func listen(on address: String?, isAtStart: Bool = false) async throws(HTTPServerError) {
    let isAwaited = isAtStart || address == awaited && address != nil
    awaited = nil
    do throws(HTTPServerError) { try await move(to: address) } catch {
      guard isAwaited else { throw error }
      awaited = address
      return log.fault(
        Self.listenKey, "metrics can't be served; it is tried again", ["cause": "\(error)"], level: .error)
    }
    log.faultEnded(Self.listenKey, "metrics have their address, or need it no more")
  }

  /// Listens on the awaited address if it is free now. - Returns: whether it is still awaited.
  public func listenAgain() async -> Bool {
    guard let awaited else { return false }
    try? await listen(on: awaited)  // it was logged at the start
    return self.awaited != nil
  }

  private static let listenKey = "listen.metrics"

  private func move(to address: String?) async throws(HTTPServerError) {
    guard address != self.address else { return }
    let old = (server, self.address)
    // The two can't listen at one time where only the port is the same.
    let isInTheWay = address.map { text in server.map { text.hasSuffix(":\($0.port)") } ?? false } ?? false
    if isInTheWay { await old.0?.stop() }
    do throws(HTTPServerError) {
      server = try address.map { address throws(HTTPServerError) in try started(address) } ?? nil
    } catch {
      if isInTheWay { server = try old.1.map { address throws(HTTPServerError) in try started(address) } ?? nil }
      throw error
    }
    self.address = address
    if !isInTheWay { await old.0?.stop() }
    if let address { log.info("metrics are served", ["listen": address, "port": String(port)]) }
  }

  /// Stops listening and closes all connections.
  public func stop() async {
    await server?.stop()
    (server, address) = (nil, nil)
  }

  private func started(_ address: String) throws(HTTPServerError) -> HTTPServer {
    var options = HTTPServerOptions()
    (options.bodyBytesMax, options.bodiesBytesMax) = (1024, 64 * 1024)
    (options.headBytesMax, options.connectionsMax) = (8 * 1024, 64)
    (options.headTimeout, options.bodyTimeout, options.stopTimeout) = (.seconds(60), .seconds(10), .seconds(1))
    return try HTTPServer(listener: try ListeningSocket(address: address), options: options) { [weak self] request in
      await self?.answer(request) ?? .refusal(503, "stopping")
    }
  }

  // MARK: Pages

  private static let routes = RouteTable<@Sendable (MetricsServer, HTTPRequest) async -> HTTPResponse>([
    .init(.get, "/") { await $0.statusPage($1) },
    .init(.get, "/doctor") { await $0.doctorPage($1) },
    .init(.get, "/status.css") { _, _ in StatusAnswers.style },
    .init(.get, "/status.js") { _, _ in StatusAnswers.script },
    .init(.get, "/metrics") { server, _ in
      HTTPResponse(status: 200, contentType: MetricsText.contentType, text: await server.page())
    },
    .init(.get, "/healthz") { _, _ in MetricsServer.text("ok\n") },
    .init(.get, "/readyz") { server, _ in await server.readiness() },
  ])

  nonisolated func answer(_ request: HTTPRequest) async -> HTTPResponse {
    switch Self.routes.find(request.method, request.path) {
    case .success(let found): await found.route(self, request)
    case .failure(let miss): miss.response
    }
  }

  private func doctorPage(_ request: HTTPRequest) async -> HTTPResponse {
    if let refusal = status.refusal(request) { return refusal }
    return StatusAnswers.html(await status.check(now: SystemTime().uptime)?.value ?? "")
  }

  private func statusPage(_ request: HTTPRequest) async -> HTTPResponse {
    if let refusal = status.refusal(request) { return refusal }
    guard await storeFigures() != nil, let pages = status.pages else {
      return StatusAnswers.html(StatusPages.silentStore(), status: 503)
    }
    return StatusAnswers.html(await pages.status())
  }

  private func page() async -> String {
    await sources.engine.metrics(
      store: await storeFigures(), ingest: await sources.ingest(), remote: await sources.remote(),
      process: .current(), commands: await sources.commands(), version: sources.version)
  }

  private func readiness() async -> HTTPResponse {
    if let obstacle = sources.engine.obstacle { return .refusal(503, obstacle) }
    guard await storeFigures() != nil else { return .refusal(503, "the store does not answer") }
    return Self.text("ready\n")
  }

  private static func text(_ text: String) -> HTTPResponse {
    HTTPResponse(status: 200, contentType: "text/plain; charset=utf-8", text: text)
  }

  /// nil: the store fails, or does not answer in time.
  private func storeFigures() async -> StoreFigures? {
    let asking =
      asking
      ?? Task {
        defer { self.asking = nil }
        return try? await sources.engine.storeFigures()  // its health tells why
      }
    self.asking = asking
    return await SystemTime().value(within: Self.storeTimeout) { await asking.value } ?? nil
  }
}
