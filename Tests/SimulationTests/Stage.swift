import CJobHook
import Dispatch
import Foundation
import PrismBase
import PrismTestSupport
import Synchronization

/// Runs Swift's concurrency on one thread, one job at a time, in an order drawn from a seed. The next job is chosen at
/// random from those that may run. So a seed is a schedule, and the same seed is the same schedule again.
///
/// Tasks, and actors without an executor of their own, are taken from the runtime by its hook. Actors on dispatch
/// queues (the store, the packet builder) run there. The stage lets their queues run in turn after every job, so that
/// they too are one at a time.
///
/// `@unchecked Sendable`: everything but `ready` is touched on the stage's own thread only.
final class Stage: @unchecked Sendable {
  /// Jobs that were enqueued and have not run.
  private let ready = Mutex<[Job]>([])
  private struct Job: @unchecked Sendable { let pointer: UnsafeMutableRawPointer }
  private var random: SeededRandom
  private var queues: [DispatchQueue] = []
  private(set) var jobsRun = 0

  private static let key = DispatchSpecificKey<Stage>()
  private static let isInstalled: Bool = {
    job_hook_install(
      { context, job in Unmanaged<Stage>.fromOpaque(context!).takeUnretainedValue().add(job!) },
      { DispatchQueue.getSpecific(key: Stage.key).map { Unmanaged.passUnretained($0).toOpaque() } })
    return true
  }()

  private init(seed: UInt64) { random = SeededRandom(seed: seed) }

  /// Runs `body` on a thread of its own that is the stage.
  static func open<Result: Sendable>(
    seed: UInt64, _ body: @escaping @Sendable (Stage) throws -> Result
  ) async throws -> Result {
    _ = isInstalled
    return try await withCheckedThrowingContinuation { continuation in
      let thread = Thread {
        let stage = Stage(seed: seed)
        job_hook_bind(Unmanaged.passUnretained(stage).toOpaque())
        let result = Swift.Result { try body(stage) }
        stage.settle()
        job_hook_bind(nil)
        continuation.resume(with: result)
      }
      thread.stackSize = 16 << 20
      thread.start()
    }
  }

  private func add(_ job: UnsafeMutableRawPointer) { ready.withLock { $0.append(Job(pointer: job)) } }

  /// The jobs that an actor on this executor sets off are the stage's.
  func adopt(_ executor: DispatchQueueExecutor) {
    executor.queue.setSpecific(key: Self.key, value: self)
    executor.queue.suspend()
    queues.append(executor.queue)
  }

  func release(_ executor: DispatchQueueExecutor) {
    executor.queue.resume()
    executor.queue.sync {}
    executor.queue.setSpecific(key: Self.key, value: nil)
    queues.removeAll { $0 === executor.queue }
  }

  // MARK: Running

  /// Runs until everybody waits for the time or for the world; at most `jobsMax` jobs.
  func settle(jobsMax: Int = .max) {
    var rest = jobsMax
    while rest > 0, let job = next() {
      job_run(job.pointer)
      for queue in queues { drain(queue) }
      jobsRun += 1
      rest -= 1
    }
  }

  private func drain(_ queue: DispatchQueue) {
    queue.resume()
    // Twice: a job on a queue may leave another one behind it.
    queue.sync {}
    queue.sync {}
    queue.suspend()
  }

  private func next() -> Job? {
    ready.withLock { ready in
      guard !ready.isEmpty else { return nil }
      let index = Int.random(in: 0..<ready.count, using: &random)
      ready.swapAt(index, ready.count - 1)
      return ready.removeLast()
    }
  }

  /// Work that was begun; it ends when the stage gets to it.
  final class Pending<Value: Sendable>: Sendable {
    private let state = Mutex<Value?>(nil)
    var value: Value? { state.withLock { $0 } }
    fileprivate func end(_ value: Value) { state.withLock { $0 = value } }
  }

  func begin<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Pending<Value> {
    let pending = Pending<Value>()
    Task.detached { pending.end(await work()) }
    return pending
  }

  /// Runs `work`, which waits for no time, and everything that it sets off.
  func perform<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) -> Value {
    let pending = begin(work)
    settle()
    guard let value = pending.value else { preconditionFailure("what was to be done waits for the time") }
    return value
  }

  /// Runs `work` on the process's own executor, while the stage waits.
  func outside<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) throws -> Value {
    job_hook_bind(nil)
    defer { job_hook_bind(Unmanaged.passUnretained(self).toOpaque()) }
    let pending = Pending<Result<Value, any Error>>()
    let isDone = DispatchSemaphore(value: 0)
    Task.detached {
      do { pending.end(.success(try await work())) } catch { pending.end(.failure(error)) }
      isDone.signal()
    }
    isDone.wait()
    return try pending.value!.get()
  }
}
