public import PrismBase
import PrismHTTP
import PrismProtocol
import PrismStore

/// The receiver: takes packets, decodes, deduplicates and orders them, stores their reports, and only then answers with
/// the receipt (docs/collector.md). The model for a backend in another language.
public final class Collector: Sendable {
  private let options: CollectorOptions
  private let openers: PacketOpeners
  private let store: CollectorStore
  private let room: WaitingRoom
  /// nil: no token is asked for.
  private let tokens: TokenDesk?
  let counts = CollectorCounts()
  /// nil: remote configuration is not served.
  let remote: (shelf: RemoteShelf, devices: DeviceRegister)?

  /// Opens the store. - Throws: `StoreError`, `SQLiteError`, `ConfigurationFaults` of the folder of remote configuration.
  public init(_ options: CollectorOptions, time: any TimeSource = SystemTime(), log: Logger) throws {
    self.options = options
    openers = PacketOpeners(keys: options.keys, memoryBytesMax: options.memoryBytesMax)
    store = try CollectorStore(folder: options.state, time: time, log: log)
    room = WaitingRoom(time: time)
    remote = try options.remote.map {
      (
        try RemoteShelf($0, state: options.state, time: time, log: log),
        try DeviceRegister(state: options.state, time: time, log: log)
      )
    }
    tokens = options.tokenFile.map { TokenDesk(path: $0, time: time, log: log) }
  }

  /// Listens and serves until the server is stopped. - Throws: `HTTPServerError`.
  public func serve() throws -> CollectorServer {
    var limits = HTTPServerOptions()
    limits.bodyBytesMax = options.bodyBytesMax
    limits.bodiesBytesMax = max(32 * 1_048_576, options.bodyBytesMax)
    limits.bodiesBytesPerAddressMax = max(16 * 1_048_576, options.bodyBytesMax)
    limits.tls = options.tls
    let server = try HTTPServer(listener: ListeningSocket(address: options.listen), options: limits) { [self] in
      await answer($0)
    }
    return CollectorServer(server: server, room: room)
  }

  /// Prometheus' text format; `SIGUSR1` prints it too.
  public var metrics: String {
    get async {
      await refreshGauges()
      return counts.metrics
    }
  }

  func answer(_ request: HTTPRequest) async -> HTTPResponse {
    do throws(CollectorRefusal) {
      switch (request.method, request.path) {
      case (.post, "/prism/meta"): return try await receive(request, .meta)
      case (.post, "/prism/payload"): return try await receive(request, .payload)
      case (.get, "/prism/config"): return try await configuration(request)
      case (.get, "/reports"): return try await reports(request)
      case (.get, "/devices"): return try await devices(request)
      case (.get, "/healthz"): return HTTPResponse(status: 200, contentType: "text/plain", text: "ok\n")
      case (.get, "/metrics"):
        return HTTPResponse(status: 200, contentType: MetricsText.contentType, text: await metrics)
      case (_, "/prism/meta"), (_, "/prism/payload"), (_, "/prism/config"), (_, "/reports"), (_, "/devices"),
        (_, "/healthz"), (_, "/metrics"):
        throw CollectorRefusal(405, "\(request.method.rawValue) is not for \(request.path)")
      default:
        throw CollectorRefusal(404, "there is nothing at this path; packets go to /prism/meta and /prism/payload")
      }
    } catch {
      return error.response
    }
  }

  // MARK: Packets

  private func receive(_ request: HTTPRequest, _ kind: ReportKind) async throws(CollectorRefusal) -> HTTPResponse {
    let namespace = request.header("prism-namespace").flatMap { NamespaceName($0) }
    do throws(CollectorRefusal) {
      try await checkToken(request)
      let delivery = try Delivery(request, kind: kind)
      let packet = try await openers.open(delivery, body: request.body)
      let outcome = try await take(packet)
      let isDuplicate = outcome == .duplicate
      counts.count(
        namespace, outcome: isDuplicate ? "duplicate" : "stored", reports: isDuplicate ? 0 : packet.rows.count,
        bytes: request.body.count)
      if !isDuplicate, let print = options.print {
        for index in packet.rows.indices { print(Self.line(packet, index)) }
      }
      let body: JSONValue = ["duplicate": .bool(isDuplicate)]
      return HTTPResponse(
        status: 200, contentType: "application/json",
        headers: [("Prism-Receipt", delivery.context.packetID.description)] + (await versionHeaders()),
        text: body.text + "\n")
    } catch {
      counts.count(namespace, outcome: "refused_\(error.status)", bytes: request.body.count)
      var refusal = error
      refusal.packetID = request.header("prism-packet-id").flatMap { PacketID($0) }
      throw refusal
    }
  }

  private func take(_ packet: OpenedPacket) async throws(CollectorRefusal) -> CollectorStore.Outcome {
    let chainIsBroken = try await waitForForerunner(packet.delivery)
    let outcome = await store.take(packet, chainIsBroken: chainIsBroken)
    if case .failed(let refusal) = outcome { throw refusal }
    await room.arrived(packet.delivery.context)
    return outcome
  }

  /// True: the packet before this one did not come. A device that this collector never heard of is not waited for: its
  /// earlier packets went elsewhere.
  private func waitForForerunner(_ delivery: Delivery) async throws(CollectorRefusal) -> Bool {
    guard let dependsOn = delivery.dependsOn else { return false }
    if await store.has(dependsOn, of: delivery.context) { return false }
    guard await store.knows(delivery.context) else { return true }
    if await store.has(delivery.context.packetID, of: delivery.context) { return false }  // sent again: a duplicate
    var awaited = delivery.context
    awaited.packetID = dependsOn
    let (store, context) = (store, delivery.context)
    switch await room.wait(for: awaited, isThere: { await store.has(dependsOn, of: context) }) {
    case .arrived: return false
    case .late: return true
    case .noPlace: throw CollectorRefusal(503, "the packet before this one is missing; try again", retryAfterSeconds: 5)
    }
  }

  func checkToken(_ request: HTTPRequest) async throws(CollectorRefusal) {
    guard let tokens, await !tokens.accepts(request.header("authorization")) else { return }
    throw CollectorRefusal(401, code: .token, "the bearer token is missing or wrong")
  }

  /// A report as `--print` writes it.
  private static func line(_ packet: OpenedPacket, _ index: Int) -> String {
    let context = packet.delivery.context
    let head: JSONValue = [
      "device": .string(context.deviceID), "namespace": .string(context.namespace.text),
      "kind": .string(context.kind.rawValue), "packetId": .string(context.packetID.description),
      "payloadBytes": packet.payload(index).map { .int($0.count) } ?? .null,
    ]
    let meta = String(decoding: packet.meta(packet.rows[index]), as: UTF8.self).printableJSON
    return head.text.dropLast() + ",\"meta\":" + meta + "}"
  }

  // MARK: Reading

  func checkReader(_ request: HTTPRequest) async throws(CollectorRefusal) {
    if tokens != nil {
      try await checkToken(request)
    } else if !request.peer.isLocal {
      throw CollectorRefusal(403, "this is shown to this machine only, or to who has the token")
    }
  }

  private func reports(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    try await checkReader(request)
    let page = try await store.page(try ReportFilter(request))
    let body: JSONValue = ["reports": .array(page), "next": page.last?["id"] ?? .null]
    return HTTPResponse(status: 200, contentType: "application/json", text: body.text + "\n")
  }
}

/// A collector that listens.
public struct CollectorServer: Sendable {
  let server: HTTPServer
  let room: WaitingRoom

  public var port: UInt16 { server.port }

  /// Takes no more packets, answers those it has, and ends.
  public func stop() async {
    await room.close()  // what is held would hold up the stop
    await server.stop()
  }
}
