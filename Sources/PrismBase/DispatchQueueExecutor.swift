public import Dispatch

/// Runs an actor on one serial `DispatchQueue`, so that blocking work (SQLite, sockets, gzip) never runs on the
/// cooperative pool, which has only one thread for each core.
///
/// `DispatchSerialQueue`, which would do this, does not exist on Linux in Swift 6.3.
public final class DispatchQueueExecutor: SerialExecutor {
  /// Dispatch sources of the actor are made on this queue; their handlers enter the actor by `assumeIsolated`.
  public let queue: DispatchQueue

  /// - Parameter isBackground: its thread comes behind others, as those of `BackgroundExecutor`.
  public init(label: String, isBackground: Bool = false) {
    queue = DispatchQueue(label: label, qos: isBackground ? .background : .unspecified)
  }

  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }

  public func checkIsolated() {
    dispatchPrecondition(condition: .onQueue(queue))
  }
}

/// Runs tasks on threads that the kernel lets wait for others (nice 10), so that long work for a reader holds up no device.
public final class BackgroundExecutor: TaskExecutor {
  /// Its threads are libdispatch's, one for each core.
  public static let shared = BackgroundExecutor()

  private let queue = DispatchQueue.global(qos: .background)

  public func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}
