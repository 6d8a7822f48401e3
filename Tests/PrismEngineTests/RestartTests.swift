import PrismConfig
import PrismControl
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("What outlives the daemon")
struct RestartTests {
  @Test("what was used of a metered network's budget is not given back by a restart")
  func flow() async throws {
    let rig = DeliveryRig(network: .metered)
    let used = try await sendOne(rig)
    #expect(used > 500)
    let next = try await rig.engine()
    #expect(await next.pipelines[DeliveryTests.shop]?.status.flow.usedBytes == used)
    await next.stop()
  }

  /// - Parameter isOut: its configuration comes back after the restart.
  @Test("a namespace waits as its collector asked before the restart", arguments: [true, false])
  func waits(isOut: Bool) async throws {
    let rig = try await asked()
    let engine = try await restarted(rig, DeliveryRig.snapshot(), isOut: isOut)
    try await waits(engine, rig, posted: 1)
  }

  @Test(
    "a collector that is another one after the restart is tried at once, and no failure counts against it",
    arguments: [true, false])
  func another(isOut: Bool) async throws {
    let rig = try await asked()
    let other = DeliveryRig.snapshot { $0.url = "https://other.test" }
    try await tries(other, rig, isOut: isOut)
    let next = try await restarted(rig, other, isOut: isOut)
    try await waits(next, rig, posted: 2)
  }

  private func waits(_ engine: Engine, _ rig: DeliveryRig, posted: Int) async throws {
    rig.time.advance(by: .seconds(600))
    for _ in 0..<1000 { await Task.yield() }
    #expect(rig.transport.requests.count == posted)
    #expect(try #require(await engine.pipelines[DeliveryTests.shop]?.status.nextTryIn) > .seconds(2900))
    await engine.stop()
  }

  private func tries(_ other: Snapshot, _ rig: DeliveryRig, isOut: Bool) async throws {
    let begin = rig.time.uptime
    let engine = try await restarted(rig, other, isOut: isOut)
    #expect(await rig.runs { rig.transport.requests.count == 2 })
    #expect(rig.time.uptime - begin < .seconds(60))
    #expect(await rig.runs { await engine.pipelines[DeliveryTests.shop]?.status.nextTryIn ?? .zero > .seconds(3500) })
    #expect(await engine.pipelines[DeliveryTests.shop]?.deliveries[.meta].retry.failuresInRow == 1)
    await engine.stop()
  }

  /// A report waits, for an hour that the collector asked for.
  private func asked() async throws -> DeliveryRig {
    let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(503, ["retry-after": "3600"], to: $0) })
    try await postOne(rig)
    return rig
  }

  private func restarted(_ rig: DeliveryRig, _ snapshot: Snapshot, isOut: Bool) async throws -> Engine {
    guard isOut else { return try await rig.engine(snapshot) }
    var without = snapshot
    without.namespaces[DeliveryTests.shop] = nil
    let engine = try await rig.engine(without)
    await engine.publish(snapshot)
    return engine
  }

  private func postOne(_ rig: DeliveryRig) async throws {
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { rig.transport.requests.count == 1 })
    await engine.stop()
  }

  private func sendOne(_ rig: DeliveryRig) async throws -> Int {
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    #expect(try await rig.runs { try await DeliveryTests.ledger(engine)[.delivered] == 1 })
    await engine.stop()
    return await engine.pipelines[DeliveryTests.shop]?.status.flow.usedBytes ?? 0
  }
}
