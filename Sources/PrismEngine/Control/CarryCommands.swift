import PrismBase
import PrismControl
import PrismPacket
import PrismProtocol
import PrismStore

/// `prismctl carry`: packets into files, and their receipts back (docs/carrying.md).
struct CarryCommands {
  typealias Refused = ControlHandler.Refused

  private static let pollInterval: Duration = .milliseconds(20)

  let handler: ControlHandler
  private var engine: Engine { handler.engine }

  /// `{"file":{"name","bytes"}}`, then `{"part":base64}` until the file is whole; so for each packet. The last line has
  /// `carried`, the sum, and `held`, the namespaces of which nothing may leave. It goes as fast as its reader.
  func carry(_ request: ControlRequest, _ note: ControlLog) -> AsyncStream<JSONValue> {
    let carrier = Carrier()
    let reader = CarryReader(carrier)
    let task = Task {
      do throws(Refused) {
        let end = try await carry(request, to: carrier)
        note.write([.init("carried", .int(await carrier.taken.packets))])
        await carrier.finish(.object(end + [Answers.done(true)]))
      } catch {
        note.write(failure: error.message)
        await carrier.finish(error.line)
      }
    }
    return AsyncStream(unfolding: { await reader.carrier.next() }, onCancel: { task.cancel() })
  }

  private func carry(
    _ request: ControlRequest, to carrier: Carrier
  ) async throws(Refused) -> [JSONValue.Member] {
    let only = try handler.namespace(request)
    let pipelines = await engine.pipelines.filter { only == nil || $0.key == only }
    guard only == nil || !pipelines.isEmpty else { throw handler.unknown(only) }
    var held: [HeldReport] = []
    for (name, pipeline) in pipelines.sorted(by: { $0.key < $1.key }) {
      let cause = try await carry(pipeline, to: carrier)
      if let cause { held.append(HeldReport(namespace: name.text, cause: cause)) }
    }
    return [Answers.carried(await carrier.taken), Answers.held(held)]
  }

  /// - Returns: why not everything that waits was written; nil if it was, or if there was nothing.
  private func carry(_ pipeline: NamespacePipeline, to carrier: Carrier) async throws(Refused) -> String? {
    // A report that is too large for the way to the collector fits into a file.
    await pipeline.endSetBacks()
    if let gate = await pipeline.carrying({ $0.begin(to: carrier) }) { return gate.reason }
    var cause: String?
    var timeout = CarryTimeout(now: engine.parts.time.uptime)
    while !(await carrier.hasNoReader), !(await pipeline.carrying({ $0.hasAll() })) {
      cause = storeFault
      guard cause == nil, (try? await engine.parts.time.sleep(for: Self.pollInterval)) != nil else { break }
      guard await timeout.isOver(carrier, now: engine.parts.time.uptime) else { continue }
      await carrier.close()
      await pipeline.carrying { $0.end() }
      throw Refused(69, "nothing was read for \(CarryTimeout.seconds) s: carry again")
    }
    if await pipeline.carrying({ $0.isFull() }) {
      cause = "\(InFlightQueue.carriedPacketsMax) packets are out: settle some, and carry again"
    }
    await pipeline.carrying { $0.end() }
    return cause
  }

  private var storeFault: String? {
    let health = engine.storeHealth
    return health.state == .failing ? "the store fails: \(health.cause ?? "no cause is known")" : nil
  }

  // MARK: Receipts

  /// Settles packets by lines of `receipts.ndjson`. Answers once what they changed is in the store.
  func settle(_ request: ControlRequest) async throws(Refused) -> [JSONValue.Member] {
    guard let lines = request["answers"]?.array else { throw Refused(64, "carry-settle: a list `answers` is missing") }
    var settled: [SettledReport] = []
    var touched: [(NamespacePipeline, RowKind)] = []
    for line in lines {
      guard let answer = CarriedAnswer(json: line) else {
        throw Refused(64, "carry-settle: an answer is no line of \(CarriedAnswer.fileName)")
      }
      let state = await settle(answer, &touched)
      settled.append(SettledReport(answer.headers, state))
    }
    for (pipeline, kind) in touched { try await wait { await pipeline.carrying { $0.hasSettled(kind) } } }
    return [Answers.settled(settled)]
  }

  private func settle(_ answer: CarriedAnswer, _ touched: inout [(NamespacePipeline, RowKind)]) async -> CarriedState {
    let headers = answer.headers
    guard let pipeline = await engine.pipelines[headers.namespace] else { return .unknown }
    do throws(Refused) {
      try await wait { await pipeline.carrying { $0.isReadyToSettle(headers.kind) } }
    } catch { return .kept(error.message) }
    touched.append((pipeline, headers.kind))
    return await pipeline.carrying { $0.returned(answer) }
  }

  /// - Throws: 69 if the daemon stops, or the store fails.
  private func wait(until isDone: () async -> Bool) async throws(Refused) {
    while !(await isDone()) {
      if let storeFault { throw Refused(69, storeFault) }
      do { try await engine.parts.time.sleep(for: Self.pollInterval) } catch {
        throw Refused(69, "the daemon is stopping")
      }
    }
  }
}

/// Notices a reader that takes nothing: while it is waited for, its namespace sends nothing over the network.
private struct CarryTimeout {
  static let seconds = 120

  private var lines = 0
  private var takenAt: Duration

  init(now: Duration) { takenAt = now }

  mutating func isOver(_ carrier: Carrier, now: Duration) async -> Bool {
    let taken = await carrier.linesTaken
    if await !carrier.hasLine || taken != lines { (lines, takenAt) = (taken, now) }
    return now - takenAt >= .seconds(Self.seconds)
  }
}

/// Ends the carrying with the stream that reads it.
private final class CarryReader: Sendable {
  let carrier: Carrier

  init(_ carrier: Carrier) { self.carrier = carrier }

  deinit {
    let carrier = carrier
    Task { await carrier.close() }
  }
}

extension SettledReport {
  fileprivate init(_ headers: PacketHeaders, _ state: CarriedState) {
    self.init()
    (packetId, namespace, kind) = (headers.packetID.description, headers.namespace.text, headers.kind.name)
    (self.state, cause) = (state.name, state.reason)
  }
}
