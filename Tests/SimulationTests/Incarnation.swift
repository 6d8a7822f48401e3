import Foundation
import PrismBase
import PrismProtocol
import PrismTestSupport
import Synchronization

@testable import PrismEngine
@testable import PrismStore

/// One run of the engine over the store in a folder, from its start to a clean stop. Or to being abandoned as by a
/// `kill -9`, after which nothing that it does matters any more.
final class Incarnation {
  let folder: String
  let time: ManualTime
  let network: FixedNetwork
  let transport: SimulatedTransport
  let store: ReportStore
  let engine: Engine
  private let stage: Stage

  init(
    _ stage: Stage, folder: String, uptime: Duration, unixMilliseconds: Int64, network: FixedNetwork,
    settings: LifeSettings, random: Randomness, transport: SimulatedTransport
  ) throws {
    (self.stage, self.folder, self.network, self.transport) = (stage, folder, network, transport)
    let time = ManualTime(uptime: uptime, unixMilliseconds: unixMilliseconds)
    self.time = time
    transport.time.withLock { $0 = time }
    let silent = Logger(time: time, write: { _ in })
    var options = StoreOptions(folder: folder)
    (options.time, options.log, options.ballastBytes) = (time, silent, 0)
    options.bootID = LifeSettings.bootID
    options.segmentBytes = 16_384
    store = try stage.outside { [options] in try await ReportStore.open(options) }
    engine = Engine(
      store: store, hub: ConfigurationHub(settings.snapshot), transport: transport, network: network,
      deviceID: LifeSettings.deviceID, time: time, random: random, log: silent)
    stage.adopt(store.executor)
    stage.adopt(engine.parts.builder.executor)
  }

  func start() throws {
    let engine = engine
    let started = stage.perform { () -> String? in
      do { try await engine.start() } catch { return "\(error)" }
      return nil
    }
    if let started { throw Broken(description: "the engine did not start: \(started)") }
  }

  /// SIGTERM. - Parameter advance: moves the world's time to the next moment that anything waits for.
  func stop(advance: () throws -> Void) throws {
    let (began, engine) = (time.uptime, engine)
    let stopping = stage.begin { await engine.stop() }
    stage.settle()
    while stopping.value == nil {
      try advance()
      stage.settle()
    }
    guard time.uptime - began <= Engine.stopMax else {
      throw Broken(description: "a stop took \(time.uptime - began)")
    }
    leave()
  }

  /// kill -9: what it has written is copied to `successor`; then it is taken down without anybody seeing it.
  func abandon(to successor: String) throws {
    for name in ["prism.db", "prism.db-wal"] where FileManager.default.fileExists(atPath: folder + "/" + name) {
      try FileManager.default.copyItem(atPath: folder + "/" + name, toPath: successor + "/" + name)
    }
    transport.die()
    let engine = engine
    let stopping = stage.begin { await engine.stop() }
    stage.settle()
    while stopping.value == nil {
      time.advance(by: .seconds(1))
      stage.settle()
    }
    leave()
    try FileManager.default.removeItem(atPath: folder)
  }

  private func leave() {
    stage.release(store.executor)
    stage.release(engine.parts.builder.executor)
  }
}

/// Brings packets to the simulated world, and its answers back.
final class SimulatedTransport: Transport {
  /// Sees a packet leave, and says what becomes of it; nil: nothing, the world is over.
  typealias Begin = @Sendable (TransferRequest) -> Deed?
  typealias Said = (status: Int, headers: [String: String], body: String)
  /// The packet is at the collector; nil: it is held there. Since when it is there decides for how long.
  typealias Arrive = @Sendable (TransferRequest, Deed, _ waited: Duration) -> Said?
  typealias End = @Sendable (TransferRequest, PostAnswer) -> Void

  let time = Mutex<ManualTime?>(nil)
  private let begin: Begin, arrive: Arrive, end: End
  private let isDead = Mutex(false)

  init(begin: @escaping Begin, arrive: @escaping Arrive, end: @escaping End) {
    (self.begin, self.arrive, self.end) = (begin, arrive, end)
  }

  /// From now on nothing gets through, and there is no answer.
  func die() { isDead.withLock { $0 = true } }

  func post(_ request: TransferRequest) async -> PostAnswer {
    guard !isDead.withLock({ $0 }), let deed = begin(request) else {
      return Self.failure(.local, mayHaveLeft: false, sent: 0)
    }
    var answer = await answer(request, deed)
    answer.origin = deed.origin
    if !isDead.withLock({ $0 }) { end(request, answer) }
    return answer
  }

  private func answer(_ request: TransferRequest, _ deed: Deed) async -> PostAnswer {
    guard let time = time.withLock({ $0 }) else { return Self.failure(.local, mayHaveLeft: false, sent: 0) }
    let (start, sent) = (time.uptime, request.body.count + 500)
    let deadline = start + request.timeout
    var said: Said?
    do {
      try await time.sleep(until: min(deadline, start + deed.before))
      if isDead.withLock({ $0 }) { return Self.failure(.cancelled, mayHaveLeft: true, sent: sent) }
      if start + deed.before < deadline, deed.reaches {
        let arrived = time.uptime
        said = arrive(request, deed, .zero)
        while said == nil, time.uptime < deadline {
          try await time.sleep(until: time.uptime + .milliseconds(500))
          if isDead.withLock({ $0 }) { return Self.failure(.cancelled, mayHaveLeft: true, sent: sent) }
          said = arrive(request, deed, time.uptime - arrived)
        }
      }
      try await time.sleep(until: min(deadline, time.uptime + deed.after))
    } catch { return Self.failure(.cancelled, mayHaveLeft: true, sent: sent) }
    guard time.uptime < deadline else { return Self.failure(.timeout, mayHaveLeft: true, sent: sent) }
    switch deed.answer {
    case .failure(let failure, let mayHaveLeft):
      return Self.failure(failure, mayHaveLeft: mayHaveLeft, sent: mayHaveLeft ? sent : 0)
    case .status(let status, let headers, let body): said = (status, headers, body)
    case .honest: break
    }
    guard let said else { return Self.failure(.badResponse, mayHaveLeft: true, sent: sent) }
    var answer = PostAnswer(
      outcome: .response(status: said.status, headers: said.headers, body: Array(said.body.utf8)), mayHaveLeft: true,
      bytesSent: sent, bytesReceived: 200, duration: time.uptime - start)
    answer.line = LineReading(roundTrip: deed.before + deed.after, least: min(deed.before, deed.after) * 2)
    return answer
  }

  private static func failure(_ failure: PostAnswer.Failure, mayHaveLeft: Bool, sent: Int) -> PostAnswer {
    PostAnswer(
      outcome: .failure(failure, detail: "simulated"), mayHaveLeft: mayHaveLeft, bytesSent: sent, bytesReceived: 0,
      duration: .zero)
  }
}
