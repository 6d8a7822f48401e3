import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

@Suite("An engine at rest")
struct RestTests {
  @Test("memory is given back after each look at an idle store, also long after the start")
  func everyPass() async throws {
    let rig = DeliveryRig()
    let rests = Mutex(0)
    let start = rig.time.uptime
    let engine = try await rig.engine(rest: { rests.withLock { $0 += 1 } })
    // A look every 3 s, later every 10 s: 20 of them take three minutes.
    #expect(await rig.runs { rests.withLock { $0 } >= 20 })
    #expect(rig.time.uptime - start < .seconds(400))
    await engine.stop()
  }
}
