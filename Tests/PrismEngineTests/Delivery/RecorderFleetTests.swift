import Foundation
import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

/// Devices that keep all of their 100 reports a second, and send what the crashes of a sample of them and questions need
/// (docs/recorder.md). 6 devices over real stores; `PRISM_SOAK=167` for 1,000. `PRISM_SEED=N` replays a run.
@Suite("A fleet that keeps everything") struct RecorderFleetTests {
  private static let devices = 6 * soakFactor
  private static let (perSecond, seconds, before) = (100, 30, 200)
  private static let shop = NamespaceName("shop")!
  private static let firstCrash = 1_000_000
  /// Devices that send what was before their crash; a third of all crash.
  private static let devicesMax = max(1, devices / 10)

  /// A collector that counts the devices that ask.
  private final class Server: Sendable {
    let requests = Mutex(0), asked = Mutex<Set<Int>>([]), places = Mutex<Set<Int>>([])

    func answer(_ request: TransferRequest, of device: Int) async -> PostAnswer {
      requests.withLock { $0 += 1 }
      guard request.url.hasSuffix(IntentQuestion.path) else { return await ScriptedTransport.accept(request) }
      asked.withLock { _ = $0.insert(device) }
      let leaves = places.withLock { places in
        if places.count < devicesMax { places.insert(device) }
        return places.contains(device)
      }
      return ScriptedTransport.answer(leaves, toIntent: request)
    }
  }

  private struct Kept {
    var number: Int, ms: Int, route: String, text: String
    var meta: String { #""n":\#(number),"ms":\#(ms),"route":"\#(route)","text":"\#(text)""# }
  }

  private static let snapshot = DeliveryRig.snapshot {
    $0.monitorList.append(MonitoredType(.appCrash))
    var rule = ReportTrigger(name: "crash", on: .appCrash)
    (rule.before, rule.everySeconds, rule.devicesMax) = (before, 0, devicesMax)
    $0.triggers = [rule]
  }

  private static func store(
    _ metas: [String], _ type: String, _ priority: Priority, _ rig: DeliveryRig, _ engine: Engine
  )
    async
  {
    var batch = ReportBatch(
      namespace: shop, userID: 1000, context: CommonContext(members: Array(#""APP_NAME":"till""#.utf8)),
      quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: 1 << 28), app: nil)
    batch.types = [.init(type: ReportType(type)!, priority: priority, isRealtime: false)]
    for meta in metas {
      let start = batch.arena.count
      batch.arena += meta.utf8
      batch.rows.append(
        .init(type: 0, createdTime: rig.time.unixMilliseconds, body: start..<batch.arena.count, metaBytes: 150))
    }
    _ = await engine.sink.append([batch])
  }

  private static func reports(second: Int, _ random: inout SeededRandom) -> [Kept] {
    (0..<perSecond).map { place in
      let number = second * perSecond + place
      return Kept(
        number: number, ms: Int(exp(Double.random(in: 1...8, using: &random))),
        route: "/\(Int.random(in: 0..<5, using: &random))",
        text: String(UInt64.random(in: 0...(.max), using: &random), radix: 16))
    }
  }

  /// On the wire, without the connection.
  private static func bytes(_ requests: [TransferRequest]) -> Int {
    requests.reduce(0) {
      $0 + $1.body.count + $1.headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
    }
  }

  private static func empty(_ rig: DeliveryRig, _ engine: Engine) async throws -> Bool {
    try await rig.runs {
      let ledger = try await engine.parts.store.status()[shop]?[.meta]?.ledger ?? Ledger()
      return ledger.isBalanced && ledger[.waiting] + ledger[.claimed] == 0 && ledger.stored > 0
    }
  }

  /// The bytes of a report where all of them are sent.
  private static func bytesSentAll(_ seed: UInt64) async throws -> Double {
    var random = SeededRandom(seed: seed)
    let rig = DeliveryRig()
    let engine = try await rig.engine(snapshot)
    for second in 0..<seconds {
      await store(reports(second: second, &random).map(\.meta), "order", .rest, rig, engine)
    }
    #expect(try await empty(rig, engine))
    await engine.stop()
    return Double(bytes(rig.transport.requests)) / Double(seconds * perSecond)
  }

  // MARK: Questions

  private struct Asked {
    var question: Question
    var by: String?
    var meets: (Kept) -> Bool
    var sum = QuestionAnswer()
    var truth: [String: [Double]] = [:]
  }

  private static func asked() throws -> [Asked] {
    let conditions: [(args: [String: CommandValue], meets: (Kept) -> Bool)] = [
      ([:], { _ in true }), (["field": .text("route"), "equals": .text("/3")], { $0.route == "/3" }),
      (["field": .text("ms"), "from": .integer(10), "to": .integer(500)], { (10...500).contains($0.ms) }),
    ]
    let wanted: [[String: CommandValue]] = [["of": .text("ms")], ["of": .text("n")], [:]]
    var all: [Asked] = []
    for condition in conditions {
      for want in wanted {
        for by in [nil, "route"] {
          var args = condition.args.merging(want) { $1 }
          (args["type"], args["by"]) = (.text("trace"), by.map { CommandValue.text($0) })
          all.append(Asked(question: try Question(args), by: by, meets: condition.meets))
        }
      }
    }
    for condition in conditions.prefix(2) {
      let args = condition.args.merging(["type": .text("trace"), "rows": .truth(true)]) { $1 }
      all.append(Asked(question: try Question(args), by: nil, meets: condition.meets))
    }
    return all
  }

  private static func answer(_ asked: inout Asked, _ kept: [Kept], _ engine: Engine) async throws {
    var run = QuestionRun(asked.question) { _ in true }
    while !run.isComplete { run = try await engine.parts.store.look(run, of: shop) }
    asked.sum.merge(try #require(QuestionAnswer(json: run.answer.fitted)))
    for report in kept where asked.meets(report) {
      let number: Double =
        switch asked.question.want {
        case .numbers(of: "ms"): Double(report.ms)
        case .numbers: Double(report.number)
        case .count, .rows: 1
        }
      asked.truth[asked.by == nil ? "" : report.route, default: []].append(number)
    }
  }

  private static func check(_ asked: Asked) {
    let count = asked.truth.values.reduce(0) { $0 + $1.count }
    #expect(asked.sum.rows == count, "\(asked.question)")
    if asked.question.want == .rows {
      #expect(asked.sum.bytes == 150 * count)
      return
    }
    #expect(Set(asked.sum.groups.keys.map(\.text)) == Set(asked.truth.keys))
    for (name, numbers) in asked.truth {
      let (sketch, sorted) = (asked.sum.groups[ExactText(name)] ?? Sketch(), numbers.sorted())
      #expect(sketch.count == sorted.count && sketch.min == sorted.first && sketch.max == sorted.last)
      #expect(sketch.sum == sorted.reduce(0, +))
      for share in [0.5, 0.9, 0.95, 0.99] {
        let truth = sorted[max(1, Int((share * Double(sorted.count)).rounded(.up))) - 1]
        let found = sketch.percentile(share) ?? -1
        #expect(abs(found - truth) <= truth * sketch.error + 1e-9, "\(asked.question) \(name): p\(share)")
      }
    }
  }

  @Test(
    "less than 5 % of the bytes leave, each crash of the sample has its 200 predecessors in order, and 20 questions agree with all reports",
    .timeLimit(.minutes(60)))
  func fleet() async throws {
    let seed = UInt64(getenv("PRISM_SEED").flatMap { UInt64(String(cString: $0)) } ?? .random(in: 0..<1_000_000))
    print("RecorderFleetTests, \(Self.devices) devices: PRISM_SEED=\(seed)")
    var (questions, bytes, crashes) = (try Self.asked(), 0, 0)
    let server = Server()
    #expect(questions.count == 20)
    for device in 0..<Self.devices {
      var random = SeededRandom(seed: seed &+ UInt64(device))
      // Two of three devices do not crash in this time.
      let crashSecond = device % 3 == 0 ? Int.random(in: 2..<Self.seconds, using: &random) : nil
      let rig = DeliveryRig()
      rig.transport.set { await server.answer($0, of: device) }
      let engine = try await rig.engine(Self.snapshot)
      var (kept, gone): ([Kept], [Int]) = ([], [])
      for second in 0..<Self.seconds {
        let new = Self.reports(second: second, &random)
        await Self.store(new.map(\.meta), "trace", .kept, rig, engine)
        kept += new
        guard second == crashSecond else { continue }
        await Self.store([#""n":\#(Self.firstCrash + device)"#], "appCrash", .crash, rig, engine)
        guard crashes < Self.devicesMax else { continue }
        gone += kept.suffix(Self.before).map(\.number)
        kept.removeLast(Self.before)
      }
      #expect(try await Self.empty(rig, engine))
      for place in questions.indices { try await Self.answer(&questions[place], kept, engine) }
      await engine.stop()
      let arrived = try rig.transport.requests.flatMap { try DeliveryRig.numbers($0) }
      #expect(arrived == (crashSecond == nil ? [] : [Self.firstCrash + device]) + gone, "device \(device)")
      bytes += Self.bytes(rig.transport.requests)
      crashes += crashSecond == nil ? 0 : 1
    }
    for question in questions { Self.check(question) }
    #expect(server.asked.withLock { $0.count } == crashes && server.places.withLock { $0.count } == Self.devicesMax)
    let all = try await Self.bytesSentAll(seed) * Double(Self.devices * Self.seconds * Self.perSecond)
    let share = Double(bytes) / all
    print(
      "RecorderFleetTests: \(crashes) crashes, \(server.asked.withLock { $0.count }) devices asked, "
        + "\(server.places.withLock { $0.count }) sent, \(server.requests.withLock { $0 }) requests; "
        + "\(bytes) bytes of \(Int(all)) left, \(share * 100) %")
    #expect(share < 0.05)
  }
}
