import PrismBase
import PrismProtocol
import Synchronization

/// The server's time at one moment of the uptime clock.
struct ServerClock: Sendable, Equatable {
  /// As an answer announced it.
  let unixMilliseconds: Int64
  let uptime: Duration

  func now(at uptime: Duration) -> Int64 {
    let (time, overflows) = unixMilliseconds.addingReportingOverflow((uptime - self.uptime).wholeMilliseconds)
    return overflows ? .max : time
  }
}

/// The servers' clocks, by the last answer to a question for records of each namespace. This machine's own clock may be wrong,
/// or not set yet.
final class ServerClocks: Sendable {
  private struct State {
    var clocks: [NamespaceName: ServerClock] = [:]
    var announced: Set<NamespaceName> = []
    var observer: (@Sendable (NamespaceName) -> Void)?
  }

  private let state = Mutex(State())

  subscript(namespace: NamespaceName) -> ServerClock? { state.withLock { $0.clocks[namespace] } }

  /// - Parameter clock: of an answer that is proven to be the server's.
  func note(_ clock: ServerClock, of namespace: NamespaceName) { state.withLock { $0.clocks[namespace] = clock } }

  /// - Parameter observer: called once for each namespace, after the first answer was executed.
  func observe(_ observer: @escaping @Sendable (NamespaceName) -> Void) { state.withLock { $0.observer = observer } }

  func tellOfFirst(_ namespace: NamespaceName) {
    let observer = state.withLock { state in
      state.announced.insert(namespace).inserted ? state.observer : nil
    }
    observer?(namespace)
  }
}
