import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector
@testable import PrismEngine

/// The daemon's engine and a collector in one process, with the clock in the test's hands.
@Suite("A dictionary on the whole route")
struct DictionaryRouteTests {
  /// Hands requests to a collector, which may be replaced by another one.
  private final class Wire: Transport {
    private struct State {
      var collector: Collector
      var dictionaryIDs: [String] = []
      var statuses: [Int] = []
    }
    private let state: Mutex<State>

    init(_ collector: Collector) { state = Mutex(State(collector: collector)) }

    var dictionaryIDs: [String] { state.withLock { $0.dictionaryIDs } }
    var statuses: [Int] { state.withLock { $0.statuses } }
    func replace(_ collector: Collector) { state.withLock { $0.collector = collector } }

    func post(_ request: TransferRequest) async -> PostAnswer {
      let parts = request.url.split(separator: "?", maxSplits: 1)
      let path = String(parts[0].dropFirst("https://collector.test".count))
      let query = parts.dropFirst().flatMap { $0.split(separator: "&") }.map { pair in
        let words = pair.split(separator: "=")
        return (name: String(words[0]), value: String(words[1]))
      }
      let answer = await collector.answer(
        HTTPRequest(
          method: request.method == .get ? .get : .post, path: path, query: query,
          headers: request.headers.map { ($0.name.lowercased(), $0.value) }, body: request.body,
          peer: HTTPPeer(address: "127.0.0.1", isLocal: true)))
      note(request, answer.status)
      let headers = Dictionary(answer.headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first }
      return PostAnswer(
        outcome: .response(status: answer.status, headers: headers, body: answer.body), mayHaveLeft: true,
        bytesSent: request.body.count, bytesReceived: answer.body.count, duration: .milliseconds(1))
    }

    private var collector: Collector { state.withLock { $0.collector } }

    private func note(_ request: TransferRequest, _ status: Int) {
      state.withLock { state in
        state.statuses.append(status)
        if let id = request.headers.first(where: { $0.name == "Prism-Dictionary" }) {
          state.dictionaryIDs.append(id.value)
        }
      }
    }
  }

  private static func collector(_ folder: TemporaryFolder) throws -> Collector {
    try Collector(
      CollectorOptions(state: folder.path, keys: ["main": DeliveryRig.key]), log: Logger(write: { _ in }))
  }

  private static func delivered(_ engine: Engine) async throws -> Int {
    try await engine.parts.store.status()[NamespaceName("shop")!]?[.meta]?.ledger[.delivered] ?? 0
  }

  @Test("packets get a dictionary once there is one, and go without where the collector lost it; each arrives once")
  func route() async throws {
    let (folder, other) = (TemporaryFolder(), TemporaryFolder())
    let (collector, successor) = (try Self.collector(folder), try Self.collector(other))
    let rig = DeliveryRig()
    let wire = Wire(collector)
    let next = try await first(rig, wire, collector)
    try await afterRestart(rig, wire, successor, from: next)
    await collector.close()
    await successor.close()
  }

  /// Packets below 50 rows: they stay rows, for which a dictionary helps.
  private static let snapshot = DeliveryRig.snapshot { shop in (shop.dictionary, shop.maxItem) = (true, 40) }

  private func deliver(_ numbers: Range<Int>, _ rig: DeliveryRig, _ engine: Engine) async throws {
    await rig.report(numbers, to: engine)
    #expect(try await rig.runs { try await Self.delivered(engine) == numbers.upperBound })
  }

  /// Until a packet came with a dictionary: the question for it is asked beside the packets.
  /// - Returns: the number of the next report.
  private func deliverPacked(from first: Int, _ rig: DeliveryRig, _ wire: Wire, _ engine: Engine) async throws -> Int {
    let packed = wire.dictionaryIDs.count
    for start in stride(from: first, to: first + 4000, by: 200) {
      try await deliver(start..<(start + 200), rig, engine)
      if wire.dictionaryIDs.count > packed { return start + 200 }
    }
    Issue.record("no packet came with a dictionary")
    return first + 4000
  }

  /// - Returns: the number of the next report.
  private func first(_ rig: DeliveryRig, _ wire: Wire, _ collector: Collector) async throws -> Int {
    let engine = try await rig.engine(Self.snapshot, over: wire)
    try await deliver(0..<200, rig, engine)
    #expect(await rig.runs { wire.statuses.contains(404) }, "the collector was asked")
    try await deliver(200..<9000, rig, engine)
    #expect(wire.dictionaryIDs.isEmpty)
    await collector.openers.dictionaries?.maintain()
    rig.time.advance(by: .seconds(61))
    let next = try await deliverPacked(from: 9000, rig, wire, engine)
    let id = try #require(collector.openers.dictionaries?.announced(of: NamespaceName("shop")!))
    #expect(wire.dictionaryIDs.last == String(id))
    await engine.stop()
    return next
  }

  private func afterRestart(_ rig: DeliveryRig, _ wire: Wire, _ successor: Collector, from first: Int) async throws {
    let engine = try await rig.engine(Self.snapshot, over: wire)
    let next = try await deliverPacked(from: first, rig, wire, engine)
    #expect(wire.statuses.count { $0 == 404 } == 1, "it outlived the restart")
    wire.replace(successor)
    try await deliver(next..<(next + 200), rig, engine)
    #expect(wire.statuses.contains(415))
    await engine.stop()
  }
}
