import Dispatch
import Glibc
import Synchronization
import Testing

@testable import PrismLinux

@Suite("A server's thread")
struct SocketLoopTests {
  private final class Witness: Sendable {
    private let gone: Atomic<Int>
    init() { gone = Atomic(0) }
    var count: Int { gone.load(ordering: .relaxed) }
    func note() { gone.add(1, ordering: .relaxed) }
  }

  /// Tells its witness when it goes.
  private final class Token: Sendable {
    private let witness: Witness
    init(_ witness: Witness = Witness()) { self.witness = witness }
    deinit { witness.note() }
  }

  private actor Server {
    let loop: SocketLoop
    private(set) var ready: [Int] = []
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    init(_ loop: SocketLoop) { self.loop = loop }

    func start(_ token: Token) {
      loop.start { [weak self] ids in
        _ = token
        self?.assumeIsolated { $0.ready += ids }
        return false
      }
    }

    func number() -> UInt { UInt(pthread_self()) }

    private(set) var count = 0
    func add() { count += 1 }
    nonisolated func addHere() { loop.enter { assumeIsolated { $0.count += 1 } } }
    nonisolated func addSoon(_ done: @escaping @Sendable () -> Void) {
      loop.enter(mayWait: true) {
        self.assumeIsolated { $0.count += 1 }
        done()
      }
    }

    /// Keeps the thread until `end`.
    func hold(_ began: DispatchSemaphore, until end: DispatchSemaphore) {
      began.signal()
      end.wait()
    }
  }

  @Test("jobs run one after the other on one thread, which they wake from waiting, from any task")
  func jobs() async throws {
    let server = Server(try SocketLoop(for: "test"))
    let threads = await withTaskGroup(of: UInt.self) { group in
      for _ in 0..<1000 { group.addTask { await server.number() } }
      return await group.reduce(into: Set<UInt>()) { $0.insert($1) }
    }
    #expect(threads.count == 1)
    #expect(!threads.contains(UInt(pthread_self())))
  }

  @Test("the taker of the thread's turn has the actor to itself")
  func turns() async throws {
    let server = Server(try SocketLoop(for: "test"))
    let queues = (0..<4).map { DispatchQueue(label: "test.\($0)") }
    await withTaskGroup(of: Void.self) { group in
      for round in 0..<4000 {
        if round % 3 == 0 {
          group.addTask { await server.add() }
        } else if round % 3 == 1 {
          group.addTask {
            await withCheckedContinuation { done in
              queues[round % 4].async { server.addSoon { done.resume() } }
            }
          }
        } else {
          group.addTask {
            await withCheckedContinuation { done in
              queues[round % 4].async {
                server.addHere()
                done.resume()
              }
            }
          }
        }
      }
    }
    #expect(await server.count == 4000)
  }

  @Test("a visitor does not wait for the thread's round: its work is done after it, without another waking")
  func visitors() async throws {
    let server = Server(try SocketLoop(for: "test"))
    let (began, end, witness) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), Witness())
    let round = Task { await server.hold(began, until: end) }
    let visit = DispatchQueue(label: "visit")
    await withCheckedContinuation { left in
      visit.async {
        began.wait()
        server.addSoon { witness.note() }
        left.resume()
      }
    }
    #expect(witness.count == 0)
    end.signal()
    await round.value
    try await eventually("the work is done") { witness.count == 1 }
  }

  @Test("a socket's readiness is reported for the events that are watched, on the server's thread")
  func readiness() async throws {
    var ends: [Int32] = [-1, -1]
    try #require(pipe(&ends) == 0)
    let server = Server(try SocketLoop(for: "test"))
    await server.start(Token())
    var watch = try #require(server.loop.watch(ends[0], id: 7, reads: false))
    try #require(write(ends[1], "x", 1) == 1)
    await #expect(server.ready.isEmpty)
    watch.set(reads: true, writes: false)
    try await eventually("the socket is ready") { await server.ready.first == 7 }
    watch.end()
    for end in ends { close(end) }
  }

  @Test("the thread ends with the last reference, and lets go of what it held")
  func end() async throws {
    let witness = Witness()
    do {
      let server = Server(try SocketLoop(for: "test"))
      await server.start(Token(witness))
    }
    try await eventually("the token is gone") { witness.count == 1 }
  }
}
