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

  private func sendOne(_ rig: DeliveryRig) async throws -> Int {
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    #expect(try await rig.runs { try await DeliveryTests.ledger(engine)[.delivered] == 1 })
    await engine.stop()
    return await engine.pipelines[DeliveryTests.shop]?.status.flow.usedBytes ?? 0
  }
}
