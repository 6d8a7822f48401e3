public import PrismBase
import PrismConfig
import PrismHTTP
import PrismOutputs
import PrismPacket
import PrismProtocol

/// The receiver: accepts packets, decodes them, deduplicates and orders them, stores their reports, and only then answers with
/// the receipt (docs/collector.md). The model for a backend in another language.
public final class Collector: Sendable {
  let options: CollectorOptions
  let openers: PacketOpeners
  let store: any PacketStore
  let queue: PacketQueue
  let access: CollectorAccess
  let counts = CollectorCounts()
  let refusals: RefusalLog
  /// nil: remote configuration is not served.
  let remote: (store: RemoteConfigurationStore, devices: DeviceRegister, guards: GuardWatch, choices: RolloutChoices)?
  let outputs: [OutputRunner]
  let devices: DeviceGate
  let time: any TimeSource
  let log: Logger

  /// Opens the store. - Throws: `StateLock.Failure`, `SQLiteError`, `PostgreSQLSetup.Refusal`, `StoreFailure`, `ConfigurationFaults` of
  /// the folder of remote configuration.
  public convenience init(_ options: CollectorOptions, time: any TimeSource = SystemTime(), log: Logger) throws {
    try self.init(options, store: try options.packetStore(time, log), time: time, log: log)
  }

  init(_ options: CollectorOptions, store: any PacketStore, time: any TimeSource, log: Logger) throws {
    (self.options, self.store, self.time, self.log) = (options, store, time, log)
    let isFleetNew = try options.fleet.prepare()
    queue = PacketQueue(store: store, time: time, heldBytesMax: options.memoryBytes / 2)
    access = CollectorAccess(
      options, page: PageState(options, time: time, log: log),
      audit: options.reader.audit ? AuditLog(queue: queue, time: time, log: log) : nil, time: time, log: log)
    devices = DeviceGate(options.fleet, isNew: isFleetNew, options.limits, time: time, log: log)
    let dictionaries = Dictionaries(DictionaryStore(options.fleet), time: time, log: log)
    openers = PacketOpeners(options, devices.standings, counts, dictionaries)
    refusals = RefusalLog(time: time, log: log)
    remote = try options.remote.map {
      (
        try RemoteConfigurationStore($0, state: options.state, in: options.fleet, time: time, log: log),
        DeviceRegister(in: options.fleet, time: time, log: log), GuardWatch(), RolloutChoices()
      )
    }
    outputs = options.outputs.map {
      OutputRunner($0.name, from: store.outputSource($0.name), to: $0.output(time), time: time, log: log)
    }
  }

  /// Prometheus' text format; `SIGUSR1` prints it too.
  public var metrics: String {
    get async {
      await refreshGauges()
      await refreshService()
      return counts.metrics
    }
  }

  private func refreshService() async {
    counts.set(
      .init(
        store: store.figures, storeFails: store.failure != nil, heldPackets: queue.heldCount,
        memoryBytes: openers.memory.usedBytes, quotas: store.quotas.figures,
        limitedDevices: devices.admission.limitedCount, outputs: await OutputRunner.figures(of: outputs),
        now: time.unixMilliseconds))
  }

  /// Answers a request at the senders' address.
  func answer(_ request: HTTPRequest) async -> HTTPResponse {
    do throws(CollectorRefusal) {
      switch try SenderRoute.table.find(request.method, request.path).mapError(CollectorRefusal.init).get().route {
      case .packet(let kind): return try await receive(request, kind)
      case .question(let answer): return try await answer(self)(request)
      }
    } catch { return error.response }
  }

  // MARK: Packets

  /// - Parameter isCarried: its owner imports it from a file: it needs no token, and no limit of its device holds.
  func receive(
    _ request: HTTPRequest, _ kind: RowKind, isCarried: Bool = false
  ) async throws(CollectorRefusal) -> HTTPResponse {
    var (known, isProven): (Delivery?, Bool) = (nil, false)
    do throws(CollectorRefusal) {
      if !isCarried { try await access.checkSender(request) }
      let arrivalTime = request.arrivalTime(by: time) + store.figures.clockAheadSeconds * 1000
      let delivery = try Delivery(request, kind: kind, now: isCarried ? nil : arrivalTime)
      known = delivery
      let sender = SenderCheck(devices, delivery)
      if !isCarried { try devices.check(sender.device) }
      var packet = try await openers.open(delivery, body: request.body, sender)
      isProven = true
      request.prove()
      packet.records = try RecordPacket(packet)
      let (isDuplicate, isBroken, applied) = try await store(packet)
      counts.count(
        delivery.context.namespace, outcome: isDuplicate ? "duplicate" : "stored",
        reports: isDuplicate || applied != nil ? 0 : packet.rows.count, bytes: request.body.count)
      if !isDuplicate { packet.note(in: self) }
      applied?.note(in: self, from: delivery.context)
      return try await accepted(delivery, isDuplicate: isDuplicate, isBroken: isBroken, applied)
    } catch {
      var refusal = error
      if isProven { refusal.sender = known?.context }
      if refusal.isForGood, let known, known.context.kind.isReport, try await hasTaken(known) {
        counts.count(known.context.namespace, outcome: "duplicate", reports: 0, bytes: request.body.count)
        return try await accepted(known, isDuplicate: true)
      }
      counts.count(
        refusal.sender?.namespace, outcome: "refused_\(error.status)", cause: error.cause, bytes: request.body.count)
      refusals.add(refusal, from: request.peer.address)
      if refusal.isForGood { await queue.refuse(packetOf: request, kind) }
      refusal.packetID = request.header("prism-packet-id").flatMap { PacketID($0) }
      if refusal.sender != nil, let known {
        refusal.verdict = try? openers.receipt(for: known, answer: Array(refusal.text.utf8), refusal: refusal.status)
      }
      throw refusal
    }
  }

  /// Whether a packet was taken under other limits, as by a replica with more memory: its sender must not split it now.
  /// - Throws: 503 if the store does not say: a refusal would be for good.
  private func hasTaken(_ packet: Delivery) async throws(CollectorRefusal) -> Bool {
    do throws(StoreFailure) { return try await store.has(packet.context.packetID, of: StreamID(packet.context)) } catch
    {
      throw CollectorRefusal.unreadable
    }
  }

  private func accepted(
    _ delivery: Delivery, isDuplicate: Bool, isBroken: Bool = false, _ applied: RecordApplied? = nil
  ) async throws(CollectorRefusal) -> HTTPResponse {
    let members =
      (applied?.receipt.members ?? []) + StoreReceipt(store: store.figures.mark, isChainBroken: isBroken).members
    let body = JSONValue.object([.init("duplicate", .bool(isDuplicate))] + members)
    return HTTPResponse(
      status: 200, contentType: "application/json",
      headers: [
        ("Prism-Receipt", try openers.receipt(for: delivery, answer: Array((body.text + "\n").utf8))),
        ("Prism-Accept", "\(PacketEncoding.zstd.rawValue), \(PacketForm.columns.rawValue)"),
        ("Prism-Window", String(HeldPackets.countOfDeviceMax)),
      ] + openers.dictionaryHeaders(delivery.context.namespace) + (await versionHeaders()) + (applied?.headers ?? []),
      text: body.text + "\n")
  }

  /// - Returns: whether it was stored before, whether the one before it is missing, and the result of operations on records.
  private func store(
    _ packet: OpenedPacket
  ) async throws(CollectorRefusal) -> (isDuplicate: Bool, isBroken: Bool, applied: RecordApplied?) {
    switch try await queue.take(packet).get() {
    case .stored(let isBroken): return (false, isBroken, nil)
    case .duplicate: return (true, false, nil)
    case .applied(let applied): return (applied.wasDuplicate, applied.isChainBroken, applied)
    case .tooOld:
      var refusal = CollectorRefusal(
        410, "packets as old as this one are forgotten, so it may have been stored; its predecessor is not known")
      refusal.unixMilliseconds = time.unixMilliseconds
      throw refusal
    case .overQuota(let overdraft):
      devices.admission.note(overdraft)
      throw overdraft.refusal
    case .predecessorMissing:
      throw CollectorRefusal(425, "the packet before this one is missing; send that one first")
    }
  }

  // MARK: How it is

  /// 200 while packets can be stored, with what an operator must mend besides; 503 with the reason after a failure.
  func health(_ request: HTTPRequest) async -> HTTPResponse {
    let holding = await OutputRunner.figures(of: outputs).compactMap { $0.figures.warning($0.name) }
    let (status, lines) =
      store.failure.map { (503, [$0]) } ?? (200, ["ok"] + store.warnings + self.devices.warnings + holding)
    return HTTPResponse(status: status, contentType: "text/plain", text: lines.map { $0 + "\n" }.joined())
  }

  fileprivate func recordsForDevice(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    try await RecordAnswers(collector: self).answer(request)
  }

  /// - Throws: 403 from another machine.
  fileprivate func localMetrics(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    try access.checkLocal(request)
    return await metricsPage()
  }

  /// - Throws: 403.
  fileprivate func nothingIsRead(_ request: HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse {
    throw CollectorRefusal(403, "nothing is read at the senders' address; ask the reader's (reader.listen)")
  }

  func metricsPage() async -> HTTPResponse {
    HTTPResponse(status: 200, contentType: MetricsText.contentType, text: await metrics)
  }
}

/// The packet or the question of a path at the senders' address.
enum SenderRoute: Sendable {
  case packet(RowKind)
  case question(@Sendable (Collector) -> (HTTPRequest) async throws(CollectorRefusal) -> HTTPResponse)

  static let table = RouteTable<SenderRoute>(
    RowKind.all.map { .init(.post, $0.path, .packet($0)) } + [
      .init(.get, DownQuestion.path, .question(Collector.recordsForDevice)),
      .init(.get, "/prism/config", .question(Collector.configuration)),
      .init(.get, DictionaryQuestion.path, .question(Collector.dictionary)),
      .init(.post, ProbeQuestion.path, .question(Collector.probe)),
      .init(.post, IntentQuestion.path, .question { IntentAnswers(collector: $0).answer }),
      .init(.post, Collector.enrollPath, .question(Collector.enroll)),
      .init(.get, "/healthz", .question(Collector.health)),
      .init(.get, "/readyz", .question(Collector.health)),
      .init(.get, "/metrics", .question(Collector.localMetrics)),
    ] + ["/reports", "/records", "/devices"].map { .init(.get, $0, .question(Collector.nothingIsRead)) },
    hint: "packets go to " + RowKind.all.map(\.path).joined(separator: ", "))
}
