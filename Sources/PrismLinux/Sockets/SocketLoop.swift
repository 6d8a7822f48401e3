import CLinux
import Glibc
import PrismBase

/// The executor of a server: one thread that waits for the server's sockets, tells which of them are ready, and runs the
/// actor's jobs in between. It ends with the last reference to it.
///
/// A queue with dispatch sources would wake two threads for each request, and one of them again to watch on; a client
/// that waits for its answer would notice. Also, when a peer hangs up, libdispatch takes the source apart on one thread
/// while the server's queue uses it on another (event_epoll.c, `_dispatch_event_merge_hangup`). That crashes now and
/// then, or takes another connection's source apart.
final class SocketLoop: SerialExecutor {
  private let thread: SocketLoopThread

  /// - Parameter path: of the server's socket, for the error. - Throws: `system`.
  init(for path: String) throws(SocketError) {
    let thread = try SocketLoopThread(path)
    self.thread = thread
    let failed = DetachedThread.start { thread.run() }
    if failed != 0 { throw .system("start a thread for", path: path, errno: failed) }
  }

  deinit { thread.end() }

  func enqueue(_ job: consuming ExecutorJob) { thread.add(UnownedJob(job), of: self) }

  func checkIsolated() { precondition(thread.isCurrent, "called from another thread than its server's") }

  /// Runs `body` here, as if on the loop's thread, which goes on afterwards: what another queue found out for the actor
  /// takes no waking of a thread. Never called by the loop's own jobs.
  func enter(_ body: () -> Void) { thread.takeTurn(body) }

  /// The same. - Parameter mayWait: while the thread works, it runs `body` itself after its round.
  func enter(mayWait: Bool, _ body: @escaping @Sendable () -> Void) {
    if mayWait { thread.takeTurnOrHandOver(body) } else { thread.takeTurn(body) }
  }

  /// - Parameter onReady: called on the loop's thread with the ids of sockets that are ready for what they are watched
  ///   for, or have hung up. Where it answers true it is called again soon, whether or not any is ready.
  func start(onReady: @escaping @Sendable ([Int]) -> Bool) { thread.start(onReady) }

  /// Has `onReady` called soon, whether or not a socket is ready.
  func goOnSoon() { thread.goOnSoon() }

  /// - Parameter id: never used again, so that an event that is late is nobody's.
  /// - Returns: nil, with `errno`, where the kernel has no room for it.
  func watch(_ socket: Int32, id: Int, reads: Bool = true) -> Watch? {
    Watch(poll: thread.poll, socket: socket, id: id, reads: reads)
  }

  /// The server's listening socket, for nothing at first. - Throws: `system`.
  func watch(_ listener: UnixListener, id: Int) throws(SocketError) -> Watch {
    guard let watch = watch(listener.descriptor, id: id, reads: false) else {
      throw .system("watch", path: listener.path, errno: errno)
    }
    return watch
  }

  /// The events that one socket is watched for. A socket without events still reports its hang-up, once.
  struct Watch {
    private let poll: Int32, socket: Int32, id: Int
    private(set) var reads: Bool, writes = false

    fileprivate init?(poll: Int32, socket: Int32, id: Int, reads: Bool) {
      (self.poll, self.socket, self.id, self.reads) = (poll, socket, id, reads)
      guard tell(isNew: true) else { return nil }
    }

    mutating func set(reads: Bool, writes: Bool) {
      guard (reads, writes) != (self.reads, self.writes) else { return }
      (self.reads, self.writes) = (reads, writes)
      _ = tell(isNew: false)  // takes no memory: it can't fail
    }

    /// Call it before the socket is closed.
    func end() { prism_poll_remove(poll, socket) }

    private func tell(isNew: Bool) -> Bool {
      prism_poll_set(poll, socket, isNew ? 1 : 0, reads ? 1 : 0, writes ? 1 : 0, UInt64(id)) == 0
    }
  }
}
