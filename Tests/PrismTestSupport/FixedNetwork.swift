public import PrismEngine
import Synchronization

/// A network that is what a test says.
public final class FixedNetwork: NetworkMonitor {
  private let state: Mutex<(current: NetworkStatus, readers: [AsyncStream<NetworkStatus>.Continuation])>

  public init(_ kind: NetworkStatus.Kind = .unmetered) {
    state = Mutex((NetworkStatus(kind: kind, interface: "test0", reason: "the test says so"), []))
  }

  public var current: NetworkStatus { state.withLock { $0.current } }

  public func set(_ kind: NetworkStatus.Kind) {
    let (state, readers) = state.withLock { state in
      state.current.kind = kind
      return (state.current, state.readers)
    }
    for reader in readers { reader.yield(state) }
  }

  public func changes() -> AsyncStream<NetworkStatus> {
    let (stream, continuation) = AsyncStream.makeStream(of: NetworkStatus.self, bufferingPolicy: .bufferingNewest(1))
    state.withLock { $0.readers.append(continuation) }
    return stream
  }
}
