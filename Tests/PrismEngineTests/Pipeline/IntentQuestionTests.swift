import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

/// The question whether the reports of a trigger may leave (docs/recorder.md, "A sample of the fleet").
@Suite("The intent of a trigger") struct IntentQuestionTests {
  private static let shop = NamespaceName("shop")!

  /// The collector's answer to a question; the last one of a list stays.
  enum Answer: Sendable { case leaves, enough, unknown, away, busy, forged, unsigned, cut, held }

  private final class Server: Sendable {
    private let answers: Mutex<[Answer]>
    let questions = Mutex<[IntentQuestion]>([])
    /// An answer that is `held` comes when this yields.
    let gate = AsyncStream.makeStream(of: Void.self)

    init(_ answers: [Answer]) { self.answers = Mutex(answers) }

    func answer(_ request: TransferRequest) async -> PostAnswer {
      guard request.url == "https://collector.test" + IntentQuestion.path else {
        return await ScriptedTransport.accept(request)
      }
      let question = IntentQuestion(controlJSON: (try? JSONValue(parsing: request.body)) ?? .null)
      questions.withLock { $0.append(question) }
      switch answers.withLock({ $0.count > 1 ? $0.removeFirst() : $0[0] }) {
      case .held:
        for await _ in gate.stream { break }
        return ScriptedTransport.answer(false, toIntent: request)
      case .leaves: return ScriptedTransport.answer(true, toIntent: request)
      case .enough: return ScriptedTransport.answer(false, toIntent: request)
      case .forged:
        return ScriptedTransport.answer(
          false, toIntent: request, key: Secret([UInt8](repeating: 9, count: 16)))
      case .unsigned: return ScriptedTransport.answer(200, body: #"{"leaves":false}"#, to: request)
      case .unknown: return ScriptedTransport.answer(404, to: request)
      case .busy: return ScriptedTransport.answer(503, ["retry-after": "100"], to: request)
      case .away: return ScriptedTransport.failure(.connect, mayHaveLeft: false)
      case .cut: return ScriptedTransport.failure(.reset, mayHaveLeft: true)
      }
    }
  }

  private static let rule: ReportTrigger = {
    var rule = ReportTrigger(name: "crash", on: .appCrash)
    (rule.before, rule.everySeconds, rule.devicesMax) = (5, 0, 50)
    return rule
  }()

  private static let snapshot = DeliveryRig.snapshot {
    $0.monitorList.append(MonitoredType(.appCrash))
    var other = ReportTrigger(name: "order", on: ReportType("order")!)
    (other.before, other.devicesMax) = (3, 7)
    $0.triggers = [rule, other]
  }

  private func store(_ numbers: Range<Int>, _ type: ReportType, _ priority: Priority, _ engine: Engine) async {
    var batch = ReportBatch(
      namespace: Self.shop, userID: 1000, context: CommonContext(members: []),
      quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: 1 << 24), app: nil)
    batch.types = [.init(type: type, priority: priority, isRealtime: false)]
    for number in numbers {
      let start = batch.arena.count
      batch.arena += #""n":\#(number)"#.utf8
      batch.rows.append(.init(type: 0, createdTime: 1000, body: start..<batch.arena.count, metaBytes: 100))
    }
    _ = await engine.sink.append([batch])
  }

  private func ledger(_ engine: Engine) async throws -> Ledger {
    let ledger = try await engine.parts.store.status()[Self.shop]?[.meta]?.ledger ?? Ledger()
    #expect(ledger.isBalanced)
    return ledger
  }

  /// Runs a device whose trigger fires, until `body` ends. - Returns: the requests, in their order.
  private func run(_ answers: [Answer], _ body: (DeliveryRig, Engine) async throws -> Void) async throws -> [String] {
    let (rig, server) = (DeliveryRig(), Server(answers))
    rig.transport.set(server.answer)
    let engine = try await rig.engine(Self.snapshot)
    await store(0..<20, ReportType("trace")!, .kept, engine)
    await store(9000..<9001, .appCrash, .crash, engine)
    do { try await body(rig, engine) } catch {
      await engine.stop()
      throw error
    }
    await engine.stop()
    for question in server.questions.withLock({ $0 }) {
      #expect(question.rule == "crash" && question.devices == 50 && question.reports == 5 && question.bytes == 500)
      #expect(question.device == "device" && question.namespace == "shop" && question.keyID == "main")
    }
    return try rig.transport.requests.map { request in
      if request.url.hasSuffix(IntentQuestion.path) { return "intent" }
      return try DeliveryRig.numbers(request).contains { $0 < 9000 } ? "reports" : "crash"
    }
  }

  @Test(
    "the collector is asked before a byte leaves, and again until it answers with its proof",
    arguments: [
      [.leaves], [.unknown, .leaves], [.away, .leaves], [.busy, .leaves], [.forged, .leaves], [.unsigned, .leaves],
      [.cut, .leaves],
    ] as [[Answer]])
  func leaves(answers: [Answer]) async throws {
    let requests = try await run(answers) { (rig, engine) async throws in
      #expect(try await rig.runs { try await ledger(engine)[.delivered] == 6 })
      #expect(try await ledger(engine)[.kept] == 15)
    }
    let asked = requests.filter { $0 != "crash" }
    #expect(asked == Array(repeating: "intent", count: answers.count) + ["reports"], "\(requests)")
  }

  @Test("if enough devices have sent, the reports stay, and that is in the status and in what explains it")
  func enough() async throws {
    let requests = try await run([.enough]) { (rig, engine) async throws in
      #expect(try await rig.runs { try await ledger(engine)[.kept] == 20 })
      #expect(await rig.runs { await engine.pipelines[Self.shop]?.isQuiet == true })
      #expect(await engine.parts.store.triggers[Self.shop]?["crash"]?.declined == 1)
    }
    #expect(requests.filter { $0 == "intent" }.count == 1 && !requests.contains("reports"), "\(requests)")
  }

  @Test("what a collector that is away has not answered is asked about after a restart") func restart() async throws {
    let (rig, server) = (DeliveryRig(), Server([.away]))
    rig.transport.set(server.answer)
    for isAway in [true, false] {
      if !isAway { rig.transport.set(Server([.leaves]).answer) }
      // It holds the folder as long as it lives.
      let engine = try await rig.engine(Self.snapshot)
      if isAway {
        await store(0..<20, ReportType("trace")!, .kept, engine)
        await store(9000..<9001, .appCrash, .crash, engine)
        #expect(await rig.runs { server.questions.withLock { $0.count > 2 } })
      } else {
        #expect(try await rig.runs { try await ledger(engine)[.delivered] == 6 })
      }
      await engine.stop()
    }
  }

  @Test("a trigger that fires while the collector is asked about another one is asked about after it")
  func meanwhile() async throws {
    let (rig, server) = (DeliveryRig(), Server([.held, .leaves]))
    rig.transport.set(server.answer)
    let engine = try await rig.engine(Self.snapshot)
    await store(0..<20, ReportType("trace")!, .kept, engine)
    await store(9000..<9001, .appCrash, .crash, engine)
    #expect(await rig.runs { server.questions.withLock { $0.count == 1 } })
    await rig.report(9100..<9101, to: engine)
    #expect(try await rig.runs { try await ledger(engine)[.delivered] == 2 }, "the upload of both that fired")
    server.gate.continuation.yield()
    #expect(try await rig.runs { try await ledger(engine)[.delivered] == 5 })
    #expect(server.questions.withLock { $0.map(\.rule) } == ["crash", "order"])
    await engine.stop()
  }

  @Test("a collector that answers 503 for a day is asked no sooner than it says, and the reports wait for it")
  func busy() async throws {
    let (rig, server) = (DeliveryRig(), Server([.busy]))
    rig.transport.set(server.answer)
    rig.time.stepWallClock(milliseconds: -rig.time.unixMilliseconds)  // the device's clock says 1970
    let engine = try await rig.engine(Self.snapshot)
    await store(0..<20, ReportType("trace")!, .kept, engine)
    await store(9000..<9001, .appCrash, .crash, engine)
    let began = rig.time.uptime
    #expect(await rig.runs(step: .seconds(20)) { rig.time.uptime - began >= .seconds(86_400) })
    #expect((20...866).contains(server.questions.withLock { $0.count }))
    #expect(try await ledger(engine)[.waiting] == 5)
    rig.transport.set(Server([.leaves]).answer)
    #expect(try await rig.runs { try await ledger(engine)[.delivered] == 6 })
    await engine.stop()
  }
}
