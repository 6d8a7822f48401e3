import PrismConfig
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismEngine

/// Rows may leave again: they do, with any work under way when that happened. Found by the simulated life.
@Suite("No request to send is lost")
struct LostRequestTests {
  @Test("a type whose payloads are switched on leaves, though a packet in flight was before it")
  func behindFrozenPacket() async throws {
    let rig = DeliveryRig(ScriptedTransport { _ in ScriptedTransport.failure(.reset, mayHaveLeft: true) })
    let engine = try await rig.engine()
    await rig.report(1...1, of: "scan", payload: [1], to: engine)
    await rig.report(2...2, of: "order", payload: [2], to: engine)
    #expect(await rig.runs { rig.transport.requests.contains { $0.url.hasSuffix("/payload") } })
    rig.transport.set(ScriptedTransport.accept)
    await engine.publish(
      DeliveryRig.snapshot { shop in
        for index in shop.monitorList.indices { shop.monitorList[index].isUploadPayload = true }
      })
    #expect(try await rig.runs { try await DeliveryTests.ledger(engine, .payload)[.delivered] == 2 })
    await engine.stop()
  }

  @Test("a network that costs nothing any more is used, though a packet was on its way when it came")
  func networkDuringUpload() async throws {
    let gate = AnswerGate()
    let rig = DeliveryRig(gate.transport, network: .metered)
    let engine = try await rig.engine()
    await rig.report(1...1, of: "log", to: engine)
    await rig.report(2...2, to: engine)
    #expect(await rig.runs { rig.transport.requests.count == 1 })
    rig.network.set(.unmetered)
    // The request is due within 2 s; its tick comes while the packet is on its way.
    for _ in 0..<20 {
      rig.time.advance(by: .milliseconds(500))
      for _ in 0..<200 { await Task.yield() }
    }
    gate.open()
    #expect(try await rig.runs { try await DeliveryTests.ledger(engine)[.delivered] == 2 })
    await engine.stop()
  }
}
