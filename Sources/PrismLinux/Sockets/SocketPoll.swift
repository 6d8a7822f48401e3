import CLinux
import Dispatch
import Glibc

/// Tells a server which of its connections are ready.
///
/// libdispatch watches only this epoll, which never hangs up, and not the connections in it: where a peer hangs up it
/// takes the source apart on one thread while the server's queue uses it on another (event_epoll.c,
/// `_dispatch_event_merge_hangup`). That crashes now and then, or takes another connection's source apart.
final class SocketPoll: Sendable {
  private let descriptor: Int32

  /// - Throws: `system`.
  init(for path: String) throws(SocketError) {
    descriptor = prism_poll_new()
    guard descriptor >= 0 else { throw .system("watch its connections", path: path, errno: errno) }
  }

  deinit { close(descriptor) }

  /// - Parameter onReady: called on `queue` while something is ready; `ready` tells what. Cancel the source at the end.
  func activate(on queue: DispatchQueue, onReady: @escaping @Sendable () -> Void) -> any DispatchSourceRead {
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
    source.setEventHandler(handler: onReady)
    source.setCancelHandler { _ = self }  // open as long as it is watched
    source.activate()
    return source
  }

  /// The connections that are ready for what they are watched for, or have hung up.
  func ready() -> [Int] {
    var ids = [UInt64](repeating: 0, count: Int(PRISM_POLL_EVENTS))
    let count = prism_poll_ready(descriptor, &ids)
    return ids[..<Int(count)].map { Int($0) }
  }

  /// - Parameter id: never used again, so that an event that is late is nobody's.
  /// - Returns: nil where the kernel has no room for it.
  func watch(_ socket: Int32, id: Int) -> Watch? { Watch(poll: self, socket: socket, id: id) }

  /// What one socket is watched for. With nothing its hanging up is told all the same, once.
  struct Watch {
    private let poll: SocketPoll, socket: Int32, id: Int
    private(set) var reads = true, writes = false

    fileprivate init?(poll: SocketPoll, socket: Int32, id: Int) {
      (self.poll, self.socket, self.id) = (poll, socket, id)
      guard tell(isNew: true) else { return nil }
    }

    mutating func set(reads: Bool, writes: Bool) {
      guard (reads, writes) != (self.reads, self.writes) else { return }
      (self.reads, self.writes) = (reads, writes)
      _ = tell(isNew: false)  // takes no memory: it can't fail
    }

    /// Call it before the socket is closed.
    func end() { prism_poll_remove(poll.descriptor, socket) }

    private func tell(isNew: Bool) -> Bool {
      prism_poll_set(poll.descriptor, socket, isNew ? 1 : 0, reads ? 1 : 0, writes ? 1 : 0, UInt64(id)) == 0
    }
  }
}
