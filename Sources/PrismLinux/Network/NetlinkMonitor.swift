import CLinux
import Dispatch
import Glibc
public import PrismBase
public import PrismConfig
public import PrismEngine
import Synchronization

/// Follows the kernel's links, addresses and routes (rtnetlink), and says what the network counts as
/// (docs/delivery.md, "Gates").
///
/// A notification only says that something changed: the tables are then read as a whole, once for a burst of them. So an
/// overrun of the socket, where notifications are lost, costs nothing. Where the kernel doesn't answer (no netlink in a
/// sandbox), `network.default` counts.
public final class NetlinkMonitor: NetworkMonitor {
  private let board: NetworkState
  private let watcher: Watcher

  /// Reads the tables, so that `current` is right from the start. Blocks for milliseconds.
  public init(_ configuration: DaemonConfiguration.Network, log: Logger) {
    board = NetworkState(Watcher.read(configuration, log))
    watcher = Watcher(configuration, board, log)
  }

  /// The network as it is now.
  public var current: NetworkStatus { board.current }
  /// Each change from now on, the newest only if the reader is slow.
  public func changes() -> AsyncStream<NetworkStatus> { board.changes() }

  /// Begins to follow the kernel; changes since `init` are reported at once.
  public func start() async { await watcher.start() }
  /// Stops following the kernel.
  public func stop() async { await watcher.stop() }

  /// Applies new rules after a reload and decides again.
  public func update(_ configuration: DaemonConfiguration.Network) async { await watcher.update(configuration) }

  private actor Watcher {
    /// A burst (an interface that comes up tells a dozen times) is one reading.
    static let burst: DispatchTimeInterval = .milliseconds(100)

    private nonisolated let executor = DispatchQueueExecutor(label: "prism.network")
    private var configuration: DaemonConfiguration.Network
    private let board: NetworkState
    private let log: Logger
    private var source: (any DispatchSourceRead)?
    private var isReadingDue = false

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(_ configuration: DaemonConfiguration.Network, _ board: NetworkState, _ log: Logger) {
      (self.configuration, self.board, self.log) = (configuration, board, log)
    }

    isolated deinit { source?.cancel() }

    func start() {
      guard source == nil else { return }
      let groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE
      let descriptor = prism_netlink_socket(UInt32(groups))
      guard descriptor >= 0 else {
        return log.warning(
          "the network is not followed; `prismctl reload` reads it again", ["cause": String(cString: strerror(errno))])
      }
      let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: executor.queue)
      source.setEventHandler { [weak self] in self?.assumeIsolated { $0.drain(descriptor) } }
      source.setCancelHandler { close(descriptor) }
      self.source = source
      source.activate()
      read()
    }

    func stop() {
      source?.cancel()
      source = nil
    }

    func update(_ configuration: DaemonConfiguration.Network) {
      self.configuration = configuration
      read()
    }

    /// ENOBUFS, an overrun, is one more reason to read: what was lost doesn't matter.
    private func drain(_ descriptor: Int32) {
      var buffer = [UInt8](repeating: 0, count: 16 * 1024)
      while true {
        let count = recv(descriptor, &buffer, buffer.count, 0)
        if count < 0 && (errno == EINTR || errno == ENOBUFS) { continue }
        guard count > 0 else { break }
      }
      guard !isReadingDue else { return }
      isReadingDue = true
      executor.queue.asyncAfter(deadline: .now() + Self.burst) { [weak self] in self?.assumeIsolated { $0.read() } }
    }

    private func read() {
      isReadingDue = false
      let state = Self.read(configuration, log)
      guard board.publish(state) else { return }
      log.info("the network changed", ["kind": state.kind.rawValue, "reason": state.reason])
    }

    static func read(_ configuration: DaemonConfiguration.Network, _ log: Logger) -> NetworkStatus {
      do {
        let facts = try NetlinkReader.read()
        log.faultEnded("network.netlink", "the kernel reports the network again")
        return NetworkDecision.state(facts, configuration)
      } catch {
        log.fault("network.netlink", "the kernel does not report the network", ["cause": error.description])
        let kind: NetworkStatus.Kind = configuration.fallback == .metered ? .metered : .unmetered
        return NetworkStatus(
          kind: kind, interface: nil,
          reason: "the kernel does not tell (\(error)); network.default says \(kind.rawValue)")
      }
    }
  }
}

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
