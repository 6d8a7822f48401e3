public import PrismEngine
import Synchronization

/// A network that is what a test says.
public final class FixedNetwork: NetworkMonitor {
  private let state: Mutex<(current: NetworkState, readers: [AsyncStream<NetworkState>.Continuation])>

  public init(_ kind: NetworkState.Kind = .unmetered) {
    state = Mutex((NetworkState(kind: kind, interface: "test0", reason: "the test says so"), []))
  }

  public var current: NetworkState { state.withLock { $0.current } }

  public func set(_ kind: NetworkState.Kind) {
    let (state, readers) = state.withLock { state in
      state.current.kind = kind
      return (state.current, state.readers)
    }
    for reader in readers { reader.yield(state) }
  }

  public func changes() -> AsyncStream<NetworkState> {
    let (stream, continuation) = AsyncStream.makeStream(of: NetworkState.self, bufferingPolicy: .bufferingNewest(1))
    state.withLock { $0.readers.append(continuation) }
    return stream
  }
}
