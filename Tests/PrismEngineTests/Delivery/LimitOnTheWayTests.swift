import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

@Suite("A proxy that takes no large bodies")
struct LimitOnTheWayTests {
  @Test(
    "a packet whose answer was lost is not split by a proxy's 413: each report arrives once", arguments: [504, 200])
  func inDoubt(status: Int) async throws {
    let taken = Mutex<[Int]>([])
    let rig = DeliveryRig(
      ScriptedTransport { request in
        let numbers = (try? DeliveryRig.numbers(request)) ?? []
        // The collector took it; its answer did not come back.
        taken.withLock { $0 += numbers }
        return ScriptedTransport.answer(status, body: "<html>", to: request)
      })
    let engine = try await rig.engine()
    await rig.report(1...5, to: engine)
    #expect(await rig.runs { !taken.withLock { $0 }.isEmpty })
    rig.transport.set { ScriptedTransport.answer(413, body: "<html>", to: $0) }
    #expect(await rig.runs { await engine.pipelines[DeliveryTests.shop]?.status.isHeld == true })
    let before = taken.withLock { $0 }
    rig.transport.set { request in
      let numbers = (try? DeliveryRig.numbers(request)) ?? []
      #expect(numbers == Array(1...5), "the packet as it was")
      return await ScriptedTransport.accept(request)
    }
    #expect(try await rig.runs { try await DeliveryTests.ledger(engine)[.delivered] == 5 })
    #expect(Set(before) == Set(1...5))
    await engine.stop()
  }

  @Test("a report that a proxy does not let through waits, and the others go on; a flush tries it again")
  func setBack() async throws {
    let limit = Mutex(2000)
    let rig = DeliveryRig(
      ScriptedTransport { request in
        let isOver = request.body.count > limit.withLock { $0 }
        return isOver ? ScriptedTransport.answer(413, to: request) : await ScriptedTransport.accept(request)
      })
    let engine = try await rig.engine(
      DeliveryRig.snapshot { $0.monitorList[0].isUploadPayload = true })
    func delivered() async throws -> Int { try await DeliveryTests.ledger(engine, .payload)[.delivered] }
    var random = SeededRandom(seed: 413)
    let large = (0..<5000).map { _ in UInt8.random(in: 0...255, using: &random) }
    await rig.report(1...3, payload: [1], to: engine)
    await rig.report(4...4, payload: large, to: engine)
    await rig.report(5...8, payload: [1], to: engine)
    #expect(try await rig.runs { try await delivered() == 7 })
    await rig.report(9...9, payload: [1], to: engine)
    #expect(try await rig.runs { try await delivered() == 8 })
    var status = try #require(try await engine.parts.store.status()[DeliveryTests.shop]?[.payload])
    #expect(status.setBack == 1 && status.ledger[.waiting] == 1 && status.ledger[.dead] == 0)
    #expect(await engine.pipelines[DeliveryTests.shop]?.status.isHeld == false)
    for number in 10...15 {
      _ = await engine.flush(DeliveryTests.shop)
      await rig.report(number...number, payload: [1], to: engine)
      #expect(try await rig.runs { try await delivered() == number - 1 }, "however often it is tried in vain")
    }
    limit.withLock { $0 = 1 << 20 }
    _ = await engine.flush(DeliveryTests.shop)
    #expect(try await rig.runs(step: .zero) { try await delivered() == 15 })
    status = try #require(try await engine.parts.store.status()[DeliveryTests.shop]?[.payload])
    #expect(status.setBack == 0 && status.ledger.isBalanced)
    await engine.stop()
  }

  @Test("a report that was set back is tried again after ten minutes, though no other one comes")
  func again() async throws {
    let posts = Mutex(0)
    let rig = DeliveryRig(
      ScriptedTransport { request in
        posts.withLock { $0 += 1 }
        return ScriptedTransport.answer(413, to: request)
      })
    let engine = try await rig.engine()
    let began = rig.time.uptime
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { posts.withLock { $0 } == 2 }, "tried again, in vain")
    #expect(rig.time.uptime - began > .seconds(600))
    rig.transport.set { await ScriptedTransport.accept($0) }
    #expect(try await rig.runs { try await DeliveryTests.ledger(engine)[.delivered] == 1 })
    #expect(rig.time.uptime - began < .seconds(1300))
    await engine.stop()
  }
}
