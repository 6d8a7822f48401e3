import PrismBase
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector
@testable import PrismConfig
@testable import PrismOutputs

/// Reports that an output's other side refuses for good.
@Suite("Dead letters of outputs", .timeLimit(.minutes(2)))
struct DeadReportTests {
  /// Refuses what a test asks.
  private final class Refusing: ReportOutput {
    private let state = Mutex((refused: Set<Int>(), taken: [Int](), isDown: false, rests: 0))
    var taken: [Int] { state.withLock { $0.taken } }
    func refuse(_ numbers: Set<Int>) { state.withLock { $0.refused = numbers } }
    func setDown(_ isDown: Bool) { state.withLock { $0.isDown = isDown } }

    func deliver(_ reports: [StoredReport]) async throws(OutputFailure) -> [RefusedReport] {
      if state.withLock({ $0.isDown }) { throw OutputFailure("it is down") }
      return state.withLock { state in
        reports.compactMap { report in
          let number = StoreRig.number(report) ?? 0
          guard state.refused.contains(number) else {
            state.taken.append(number)
            return nil
          }
          return RefusedReport(id: report.id, cause: "number \(number)")
        }
      }
    }
    var rests: Int { state.withLock { $0.rests } }
    func rest() async { state.withLock { $0.rests += 1 } }
    func close() async {}
  }

  @Test(
    "a refused report is kept, listed, handed on again in the operator's word, and dropped",
    arguments: StoreRig.Kind.allCases)
  func life(kind: StoreRig.Kind) async throws {
    let (rig, output, time) = (StoreRig(), Refusing(), ManualTime())
    let store = try await rig.store(kind)
    _ = try await store.take(StoreRig.packet([1, 2, 3, 4]))
    let source = store.outputSource("x")
    output.refuse([2, 4])
    let runner = OutputRunner("x", from: source, to: output, time: time, log: rig.log)
    let running = Task { await runner.run() }
    while await runner.figures.refused < 2 { await Task.yield() }
    #expect(output.taken == [1, 3])
    let dead = try await source.dead(after: 0, limit: 10, onlyRequeued: false)
    #expect(dead.map(\.cause) == ["number 2", "number 4"] && dead.allSatisfy { !$0.isRequeued })
    #expect(try await source.dead(after: dead[0].id, limit: 10, onlyRequeued: false).count == 1)
    #expect(rig.logged.count { $0.contains("an output refuses reports for good") && $0.contains("reports=2") } == 1)
    // The second one is refused again.
    output.refuse([4])
    #expect(try await source.change(dead: 0...Int64.max, .requeue) == 2)
    while await runner.figures.refused < 3 {
      time.advance(by: .seconds(6))
      await Task.yield()
    }
    #expect(output.taken == [1, 3, 2])
    #expect(try await source.dead(after: 0, limit: 10, onlyRequeued: false).map(\.id) == [dead[1].id])
    #expect(try await source.dead(after: 0, limit: 10, onlyRequeued: true) == [])
    #expect(await runner.figures.dead.reports == 1)
    #expect(try await source.change(dead: dead[1].id...dead[1].id, .drop) == 1)
    #expect(try await source.deadCount() == DeadCount())
    running.cancel()
    await running.value
    await store.close()
  }

  @Test("an output that does not take the dead letters of an operator says so, also where no other report waits")
  func requeuedToOneThatIsDown() async throws {
    let (rig, output, time) = (StoreRig(), Refusing(), ManualTime())
    let store = try await rig.store(.sqlite)
    _ = try await store.take(StoreRig.packet([1, 2, 3]))
    let source = store.outputSource("x")
    try await source.note(
      cursor: 3,
      refused: [RefusedReport(id: 1, cause: "1 of 2"), RefusedReport(id: 2, cause: "1 of 2", isDelivered: true)])
    output.setDown(true)
    let runner = OutputRunner("x", from: source, to: output, time: time, log: rig.log)
    let running = Task { await runner.run() }
    #expect(try await source.change(dead: 1...2, .requeue) == 2)
    func wait(_ condition: (OutputRunner.Figures) -> Bool) async {
      while await !condition(runner.figures) {
        time.advance(by: .seconds(6))
        await Task.yield()
      }
    }
    await wait { $0.holds == "it is down" && $0.failures > 1 }
    output.setDown(false)
    await wait { $0.holds == nil }
    #expect(output.taken == [1, 2])
    #expect(output.rests > 0)
    #expect(await runner.figures.delivered == 1, "one of the two was counted as delivered before")
    running.cancel()
    await running.value
    await store.close()
  }

  @Test(
    "of letters that stand for one refusal one report counts, as long as one of them is kept",
    arguments: StoreRig.Kind.allCases)
  func shared(kind: StoreRig.Kind) async throws {
    let store = try await StoreRig().store(kind)
    let source = store.outputSource("x")
    _ = try await source.lead()
    let letters = (1...4).map { RefusedReport(id: $0, cause: "1 of 4", isDelivered: $0 > 1) }
    try await source.note(cursor: 4, refused: letters)
    #expect(try await source.deadCount() == DeadCount(letters: 4, refused: 1))
    _ = try await source.change(dead: 1...2, .drop)
    #expect(try await source.deadCount() == DeadCount(letters: 2, refused: 0))
    #expect(try await source.deadCount().reports == 1, "it may be one of these")
    // Handed on alone, it is known.
    try await source.note(cursor: 0, refused: [RefusedReport(id: 3, cause: "no")])
    #expect(try await source.deadCount() == DeadCount(letters: 2, refused: 1))
    await store.close()
  }

  private static func files(_ folder: String) -> CollectorConfiguration.Output {
    .init(name: "files", target: .ndjson(folder: folder, compresses: true, bytesMax: 1 << 28, age: .seconds(3600)))
  }

  @Test("the API lists dead letters of an output, and an operator hands them on again or drops them")
  func api() async throws {
    let rig = StoreRig()
    var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
    options.outputs = [Self.files(rig.path)]
    let collector = try Collector(options, time: rig.time, log: rig.log)
    _ = try await collector.store.take(StoreRig.packet([1, 2]))
    let source = collector.store.outputSource("files")
    try await source.note(cursor: 2, refused: [1, 2].map { RefusedReport(id: $0, cause: "as asked") })
    let ask = { (path: String, body: String?) in
      let answer = await collector.answerReader(
        PageRig.request(
          "/api/v1/outputs/\(path)/dead", method: body == nil ? .get : .post,
          headers: [("content-type", "application/json")], body: body ?? ""), isOwner: true)
      return (answer.status, try JSONValue(parsing: answer.body))
    }
    let (status, list) = try await ask("files", nil)
    #expect(status == 200 && list["dead"]?.array?.compactMap { $0["id"]?.int } == [1, 2])
    #expect(list["dead"]?.array?.first?["cause"] == "as asked" && list["next"] == .null)
    #expect(try await ask("files", #"{"action":"requeue","last":1}"#).1["changed"] == 1)
    #expect(try await source.dead(after: 0, limit: 9, onlyRequeued: true).map(\.id) == [1])
    #expect(try await ask("files", #"{"action":"drop"}"#).1["changed"] == 2)
    #expect(try await ask("pigeon", nil).0 == 404)
    for body in [#"{"action":"burn"}"#, #"{"action":"drop","first":2,"last":1}"#] {
      #expect(try await ask("files", body).0 == 400)
    }
    await collector.close()
  }

  @Test("/readyz stays 200, and names an output that holds and why")
  func readiness() async throws {
    let rig = StoreRig()
    var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
    options.outputs = [Self.files("/dev/null/out")]
    let collector = try Collector(options, time: rig.time, log: rig.log)
    _ = try await collector.store.take(StoreRig.packet([1]))
    let running = Task { await collector.outputs[0].run() }
    while await collector.outputs[0].figures.holds == nil { await Task.yield() }
    let answer = await collector.answer(PageRig.request("/readyz"))
    let text = String(decoding: answer.body, as: UTF8.self)
    #expect(answer.status == 200 && text.hasPrefix("ok\nthe output files takes no reports: "), "\(text)")
    #expect(await collector.metrics.contains("prism_collector_output_holds{output=\"files\"} 1"))
    running.cancel()
    await running.value
    await collector.close()
  }
}
