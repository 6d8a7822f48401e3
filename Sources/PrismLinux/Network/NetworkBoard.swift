import PrismEngine
import Synchronization

/// Where the network's state is written, read and waited for.
final class NetworkBoard: Sendable {
  private struct State {
    var current: NetworkState
    var readers: [Int: AsyncStream<NetworkState>.Continuation] = [:]
    var lastReader = 0
  }

  private let state: Mutex<State>

  init(_ current: NetworkState) { state = Mutex(State(current: current)) }

  var current: NetworkState { state.withLock { $0.current } }

  /// - Returns: true when it is a change; an equal state wakes nobody.
  func publish(_ new: NetworkState) -> Bool {
    let readers: [AsyncStream<NetworkState>.Continuation]? = state.withLock { state in
      guard state.current != new else { return nil }
      state.current = new
      return Array(state.readers.values)
    }
    for reader in readers ?? [] { reader.yield(new) }
    return readers != nil
  }

  func changes() -> AsyncStream<NetworkState> {
    let (stream, continuation) = AsyncStream.makeStream(of: NetworkState.self, bufferingPolicy: .bufferingNewest(1))
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
