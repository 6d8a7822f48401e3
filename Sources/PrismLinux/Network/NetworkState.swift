import PrismEngine
import Synchronization

/// Where the network's state is written, read and waited for.
final class NetworkState: Sendable {
  private struct State {
    var current: NetworkStatus
    var readers: [Int: AsyncStream<NetworkStatus>.Continuation] = [:]
    var lastReader = 0
  }

  private let state: Mutex<State>

  init(_ current: NetworkStatus) { state = Mutex(State(current: current)) }

  var current: NetworkStatus { state.withLock { $0.current } }

  /// - Returns: true if it is a change; an equal state wakes no waiter.
  func publish(_ new: NetworkStatus) -> Bool {
    let readers: [AsyncStream<NetworkStatus>.Continuation]? = state.withLock { state in
      guard state.current != new else { return nil }
      state.current = new
      return Array(state.readers.values)
    }
    for reader in readers ?? [] { reader.yield(new) }
    return readers != nil
  }

  func changes() -> AsyncStream<NetworkStatus> {
    let (stream, continuation) = AsyncStream.makeStream(of: NetworkStatus.self, bufferingPolicy: .bufferingNewest(1))
    let id = state.withLock { state in
      state.lastReader += 1
      state.readers[state.lastReader] = continuation
      return state.lastReader
    }
    continuation.onTermination = { [weak self] _ in
      self?.state.withLock { _ = $0.readers.removeValue(forKey: id) }
    }
    return stream
  }
}
