import CLinux
import Glibc
import Synchronization

/// The state of a `SocketLoop`'s thread. It does not hold the loop, so that the loop can end.
final class SocketLoopThread: Sendable {
  typealias OnReady = @Sendable ([Int]) -> Bool

  private struct State {
    var jobs: [(job: UnownedJob, loop: SocketLoop)] = []
    /// Work that others handed over because they did not get the turn.
    var visits: [@Sendable () -> Void] = []
    var onReady: OnReady?
    /// `onReady` is called though no socket is ready.
    var goesOn = false
    /// The thread waits, or is about to: a caller that adds something must wake it.
    var isWaiting = false
    var hasEnded = false
  }

  private static let wakeID = UInt64.max

  let poll: Int32
  /// An eventfd: what is written to it ends the waiting.
  private let wake: Int32
  private let state = Mutex(State())
  /// Held while code of the actor runs: by the thread except while it waits, or by the caller that takes its turn
  /// meanwhile.
  private let turn = FairLock()
  private let holder = Atomic<UInt>(0)

  init(_ path: String) throws(SocketError) {
    poll = prism_poll_new()
    guard poll >= 0 else { throw .system("watch its connections", path: path, errno: errno) }
    wake = prism_event_new()
    // From here on `deinit` closes both, after a failure too.
    guard wake >= 0, prism_poll_set(poll, wake, 1, 1, 0, Self.wakeID) == 0 else {
      throw .system("wake its thread", path: path, errno: errno)
    }
  }

  deinit {
    close(poll)
    close(wake)
  }

  var isCurrent: Bool { holder.load(ordering: .relaxed) == UInt(pthread_self()) }

  func takeTurn(_ body: () -> Void) { turn.withLock { hold(body) } }

  /// Takes the turn if it is free, else hands `body` over: to wait would take a processor from the holder's work.
  func takeTurnOrHandOver(_ body: @escaping @Sendable () -> Void) {
    if !turn.withLockIfFree({ hold(body) }) { change { $0.visits.append(body) } }
  }

  private func hold(_ body: () -> Void) {
    holder.store(UInt(pthread_self()), ordering: .relaxed)
    body()
    holder.store(0, ordering: .relaxed)
  }

  func add(_ job: UnownedJob, of loop: SocketLoop) { change { $0.jobs.append((job, loop)) } }
  func start(_ onReady: @escaping OnReady) { change { $0.onReady = onReady } }
  func goOnSoon() { change { $0.goesOn = true } }
  func end() { change { $0.hasEnded = true } }

  private func change(_ body: (inout State) -> Void) {
    let mustWake = state.withLock { state in
      body(&state)
      defer { state.isWaiting = false }
      return state.isWaiting
    }
    var one: UInt64 = 1
    if mustWake { _ = write(wake, &one, 8) }
  }

  func run() {
    var ids = [UInt64](repeating: 0, count: Int(PRISM_POLL_EVENTS))
    while true {
      let count = prism_poll_ready(poll, &ids, beginWaiting() ? -1 : 0)
      let now = endWaiting()
      if now.hasEnded { return }
      let ready = ids[..<Int(count)].compactMap { $0 == Self.wakeID ? nil : Int($0) }
      if ready.count < count { forgetWake() }
      takeTurn {
        for visit in now.visits { visit() }
        for (job, loop) in now.jobs { job.runSynchronously(on: loop.asUnownedSerialExecutor()) }
        if !ready.isEmpty || now.goesOn, now.onReady?(ready) == true { goOnSoon() }
      }
    }
  }

  /// false: something came that must not wait.
  private func beginWaiting() -> Bool {
    state.withLock { state in
      state.isWaiting = state.jobs.isEmpty && state.visits.isEmpty && !state.hasEnded && !state.goesOn
      return state.isWaiting
    }
  }

  private func endWaiting() -> State {
    state.withLock { state in
      defer { (state.isWaiting, state.jobs, state.visits, state.goesOn) = (false, [], [], false) }
      return state
    }
  }

  private func forgetWake() {
    var count: UInt64 = 0
    _ = read(wake, &count, 8)
  }
}

/// A lock that its waiters get in their order. A mutex of the POSIX library lets a running thread in before one that sleeps, so
/// that a busy thread would keep the others waiting.
///
/// A waiter spins in the kernel while the holder runs (futex(2), FUTEX_LOCK_PI), and sleeps while it does not.
final class FairLock: Sendable {
  private let turn = Mutex(())

  /// - Returns: false if another one holds it, and `body` did not run.
  func withLockIfFree(_ body: () -> Void) -> Bool { turn.withLockIfAvailable { _ in body() } != nil }

  func withLock(_ body: () -> Void) { turn.withLock { _ in body() } }
}
