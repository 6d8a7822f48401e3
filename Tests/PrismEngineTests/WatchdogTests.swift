import Dispatch
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

/// The turns that feed the daemon's watchdog.
@Suite("The turns that a watchdog is fed on")
struct WatchdogTests {
  /// Keeps the thread of its caller while it is shut.
  private final class Gate: Sendable {
    private let opened = DispatchSemaphore(value: 0)
    private let state = Mutex((isShut: false, isHolding: false))
    var isHolding: Bool { state.withLock { $0.isHolding } }
    func shut() { state.withLock { $0.isShut = true } }
    func pass() {
      let waits = state.withLock { state in
        if state.isShut { state.isHolding = true }
        return state.isShut
      }
      if waits { opened.wait() }
    }
    func open() {
      state.withLock { $0 = (false, false) }
      opened.signal()
    }
  }

  @Test("a pipeline that hangs keeps the watchdog hungry, though the store turns; once it goes on, all is well")
  func hungPipeline() async throws {
    let (rig, gate) = (DeliveryRig(), Gate())
    let hasTurned = Mutex(false)
    let engine = try await rig.engine(
      random: Randomness {
        gate.pass()
        return 1
      })
    await engine.turns()  // all is well
    gate.shut()
    let flush = Task { await engine.flush(NamespaceName("shop")) }
    while !gate.isHolding { await Task.yield() }
    let turn = Task {
      await engine.turns()
      hasTurned.withLock { $0 = true }
    }
    // The store turns meanwhile, a hundred times over.
    for _ in 0..<100 { _ = await engine.parts.store.namespaces() }
    #expect(!hasTurned.withLock { $0 })
    gate.open()
    await turn.value
    _ = await flush.value
    await engine.turns()
    await engine.stop()
  }
}
