import Glibc
import Synchronization
import Testing

@testable import PrismLinux

@Suite("Signals", .serialized, .timeLimit(.minutes(10)))
struct SignalMonitorTests {
  @Test("SIGHUP reloads, the first SIGTERM or SIGINT stops, the second ends the process at once; SIGPIPE does nothing")
  func signals() async throws {
    let events = Mutex<[SignalMonitor.Event]>([])
    let exits = Mutex<[Int32]>([])
    let monitor = SignalMonitor(
      exitNow: { code in exits.withLock { $0.append(code) } },
      handler: { event in events.withLock { $0.append(event) } })
    await monitor.start()
    kill(getpid(), SIGPIPE)
    kill(getpid(), SIGHUP)
    try await eventually("the reload") { events.withLock { $0 } == [.reload] }
    kill(getpid(), SIGTERM)
    try await eventually("the stop") { events.withLock { $0 } == [.reload, .stop] }
    kill(getpid(), SIGHUP)
    try await eventually("a reload while stopping") { events.withLock { $0 } == [.reload, .stop, .reload] }
    kill(getpid(), SIGINT)
    try await eventually("the end") { exits.withLock { $0 } == [128 + SIGINT] }
  }
}
