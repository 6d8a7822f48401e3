public import Dispatch

/// Runs an actor on one serial `DispatchQueue`, so that blocking work (SQLite, sockets, gzip) never runs on the
/// cooperative pool, which has only one thread for each core.
///
/// `DispatchSerialQueue`, which would do this, does not exist on Linux in Swift 6.3.
public final class DispatchQueueExecutor: SerialExecutor {
  /// Dispatch sources of the actor are made on this queue; their handlers enter the actor by `assumeIsolated`.
  public let queue: DispatchQueue

  public init(label: String) { queue = DispatchQueue(label: label) }

  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  public func checkIsolated() {
    dispatchPrecondition(condition: .onQueue(queue))
  }
}
