import PrismConfig
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

  @Test("a namespace that comes back after a restart waits as its collector asked before")
  func comesBack() async throws {
    let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(503, ["retry-after": "3600"], to: $0) })
    try await postOne(rig)
    var without = DeliveryRig.snapshot()
    without.namespaces[DeliveryTests.shop] = nil
    let engine = try await rig.engine(without)
    await engine.publish(DeliveryRig.snapshot())
    rig.time.advance(by: .seconds(600))
    for _ in 0..<1000 { await Task.yield() }
    #expect(rig.transport.requests.count == 1)
    #expect(try #require(await engine.pipelines[DeliveryTests.shop]?.status.nextTryIn) > .seconds(2900))
    await engine.stop()
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
