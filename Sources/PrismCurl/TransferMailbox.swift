import CCurl
import PrismBase
import PrismProtocol
import Synchronization

/// Between the tasks that wait for a transfer and the thread that performs it: what was asked and what was taken back.
final class TransferMailbox: Sendable {
  typealias ID = UInt64

  struct Job: Sendable {
    let id: ID
    let request: TransferRequest
    /// Gets the body of an answer with status 200; nil: it is kept in memory.
    var file: UnnamedFile?
    let finish: @Sendable (PostAnswer) -> Void
  }

  struct State {
    var jobs: [Job] = []
    /// Of all that were cancelled and not yet forgotten; those that already finished may be among them.
    var cancelled: Set<ID> = []
    var isStopped = false
    var hasThread = false
    /// The thread's multi handle, for `curl_multi_wakeup`: the one call on it that any thread may make. As a number,
    /// for nothing else may be done with it here.
    var multi: UInt?
  }

  private let state = Mutex(State())

  private static let lastID = Atomic<ID>(0)

  static func newID() -> ID { lastID.add(1, ordering: .relaxed).newValue }

  /// - Returns: true when the caller must start the thread.
  func submit(_ job: Job) -> Bool {
    state.withLock { state in
      state.jobs.append(job)
      Self.wake(state)
      defer { state.hasThread = true }
      return !state.hasThread
    }
  }

  /// May come before `submit`, or after the job has finished.
  func cancel(_ id: ID) {
    state.withLock { state in
      state.cancelled.insert(id)
      Self.wake(state)
    }
  }

  /// The job has finished and will not be cancelled any more.
  func forget(_ id: ID) {
    state.withLock { _ = $0.cancelled.remove(id) }
  }

  func stop() {
    state.withLock { state in
      state.isStopped = true
      Self.wake(state)
    }
  }

  // The thread's side.

  func attach(multi: UnsafeMutableRawPointer) {
    state.withLock { $0.multi = UInt(bitPattern: multi) }
  }

  /// Takes the jobs; the rest is as it is.
  func take() -> State {
    state.withLock { state in
      defer { state.jobs = [] }
      return state
    }
  }

  /// The thread wants to end, or could not begin.
  /// - Returns: false when a job came in between: then it must stay.
  func detach() -> Bool {
    state.withLock { state in
      guard state.jobs.isEmpty else { return false }
      (state.hasThread, state.multi) = (false, nil)
      return true
    }
  }

  /// Nothing can be performed: answers every waiting transfer.
  func fail(_ detail: String) {
    repeat {
      for job in take().jobs { job.finish(.unsent(.local, detail)) }
    } while !detach()
  }

  private static func wake(_ state: State) {
    if let multi = state.multi { curl_multi_wakeup(UnsafeMutableRawPointer(bitPattern: multi)) }
  }
}
