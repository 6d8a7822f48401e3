import CLinux
import Glibc
import Synchronization

/// What the thread of a `SocketLoop` holds; not the loop itself, so that the loop can end.
final class SocketLoopThread: Sendable {
  private struct State {
    var jobs: [(job: UnownedJob, loop: SocketLoop)] = []
    var onReady: (@Sendable ([Int]) -> Void)?
    /// The thread waits, or is about to: whoever adds something must wake it.
    var isWaiting = false
    var hasEnded = false
  }

  private static let wakeID = UInt64.max

  let poll: Int32
  /// An eventfd: what is written to it ends the waiting.
  private let wake: Int32
  private let state = Mutex(State())
  private let id = Atomic<UInt>(0)

  init(_ path: String) throws(SocketError) {
    poll = prism_poll_new()
    guard poll >= 0 else { throw .system("watch its connections", path: path, errno: errno) }
    wake = prism_event_new()
    guard wake >= 0, prism_poll_set(poll, wake, 1, 1, 0, Self.wakeID) == 0 else {
      let code = errno
      close(poll)
      close(wake)
      throw .system("wake its thread", path: path, errno: code)
    }
  }

  deinit {
    close(poll)
    close(wake)
  }

  var isCurrent: Bool { id.load(ordering: .relaxed) == UInt(pthread_self()) }

  func add(_ job: UnownedJob, of loop: SocketLoop) { change { $0.jobs.append((job, loop)) } }
  func start(_ onReady: @escaping @Sendable ([Int]) -> Void) { change { $0.onReady = onReady } }
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
    id.store(UInt(pthread_self()), ordering: .relaxed)
    var ids = [UInt64](repeating: 0, count: Int(PRISM_POLL_EVENTS))
    while runJobs() {
      let count = prism_poll_ready(poll, &ids, beginWaiting() ? -1 : 0)
      let onReady = state.withLock { state in
        state.isWaiting = false
        return state.onReady
      }
      let ready = ids[..<Int(count)].compactMap { $0 == Self.wakeID ? nil : Int($0) }
      if ready.count < count { forgetWake() }
      if !ready.isEmpty { onReady?(ready) }
    }
  }

  /// false: the loop has ended.
  private func runJobs() -> Bool {
    let (jobs, hasEnded) = state.withLock { state in
      defer { state.jobs = [] }
      return (state.jobs, state.hasEnded)
    }
    for (job, loop) in jobs { job.runSynchronously(on: loop.asUnownedSerialExecutor()) }
    return !hasEnded
  }

  /// false: something came that must not wait.
  private func beginWaiting() -> Bool {
    state.withLock { state in
      state.isWaiting = state.jobs.isEmpty && !state.hasEnded
      return state.isWaiting
    }
  }

  private func forgetWake() {
    var count: UInt64 = 0
    _ = read(wake, &count, 8)
  }
}
