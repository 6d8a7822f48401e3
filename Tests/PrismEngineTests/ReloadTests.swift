import PrismBase
import PrismConfig
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismEngine

/// The parts that notice a new configuration, and the end of a pause.
@Suite("Reload")
struct ReloadTests {
  private static let shop = NamespaceName("shop")!

  /// A namespace whose collector fails, in a long pause.
  private func paused(_ rig: DeliveryRig) async throws -> (engine: Engine, tryAt: Duration) {
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    let isPaused = await rig.runs {
      guard let next = await engine.pipelines[Self.shop]?.status.nextTryIn else { return false }
      return rig.transport.requests.count >= 4 && next > .seconds(20)
    }
    #expect(isPaused)
    let next = try #require(await engine.pipelines[Self.shop]?.status.nextTryIn)
    return (engine, rig.time.uptime + next)
  }

  @Test("a namespace that a reload does not change notices nothing: its pause, its retries and its circuit stay")
  func others() async throws {
    let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(503, to: $0) })
    let (engine, tryAt) = try await paused(rig)
    let attempts = rig.transport.requests.count
    for days in 1...20 {
      var snapshot = DeliveryRig.snapshot()
      snapshot.namespaces[.prism]?.expirationDays = days
      snapshot.daemon.logLevel = days.isMultiple(of: 2) ? .debug : .info
      let change = await engine.publish(snapshot)
      #expect(!change.namespaces.contains(Self.shop))
    }
    let next = try #require(await engine.pipelines[Self.shop]?.status.nextTryIn)
    #expect(rig.time.uptime + next == tryAt)
    #expect(rig.transport.requests.count == attempts)
    await engine.stop()
  }

  @Test("a reload of a namespace, and the network's coming back, end its pause within the jitter of 2 s")
  func ends() async throws {
    for byNetwork in [true, false] {
      let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(503, to: $0) })
      let (engine, tryAt) = try await paused(rig)
      rig.transport.set(ScriptedTransport.accept)
      if byNetwork {
        rig.network.set(.none)
        rig.network.set(.unmetered)
      } else {
        await engine.publish(DeliveryRig.snapshot { $0.maxItem = 7 })
      }
      #expect(try await rig.runs { try await DeliveryTests.ledger(engine)[.delivered] == 1 })
      #expect(rig.time.uptime < tryAt - .seconds(15), "by the network: \(byNetwork)")
      await engine.stop()
    }
  }

  @Test("a namespace that is taken out and comes back waits as its collector asked; another collector is tried at once")
  func comesBack() async throws {
    let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(503, ["retry-after": "3600"], to: $0) })
    let engine = try await rig.engine()
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { rig.transport.requests.count == 1 })
    var without = DeliveryRig.snapshot()
    without.namespaces[Self.shop] = nil
    await engine.publish(without)
    await engine.publish(DeliveryRig.snapshot())
    rig.time.advance(by: .seconds(600))
    for _ in 0..<1000 { await Task.yield() }
    #expect(rig.transport.requests.count == 1)
    #expect(try #require(await engine.pipelines[Self.shop]?.status.nextTryIn) > .seconds(2900))
    await engine.publish(DeliveryRig.snapshot { $0.url = "https://other.test" })
    #expect(await rig.runs { rig.transport.requests.count == 2 })
    await engine.stop()
  }
}
