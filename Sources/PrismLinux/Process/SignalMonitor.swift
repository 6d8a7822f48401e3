import Dispatch
import Glibc
import PrismBase

/// SIGTERM and SIGINT ask for a stop, a second one of either ends the process at once; SIGHUP asks for a reload; SIGPIPE
/// is ignored (7-operations.md).
public actor SignalMonitor {
  public enum Event: Sendable, Equatable { case stop, reload }

  private nonisolated let executor = DispatchQueueExecutor(label: "prism.signals")
  private let handler: @Sendable (Event) -> Void
  private let exitNow: @Sendable (Int32) -> Void
  private var sources: [any DispatchSourceSignal] = []
  private var isStopping = false

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// - Parameter handler: called on the monitor's queue; it must not block.
  public init(handler: @escaping @Sendable (Event) -> Void) {
    self.init(exitNow: { _exit($0) }, handler: handler)
  }

  init(exitNow: @escaping @Sendable (Int32) -> Void, handler: @escaping @Sendable (Event) -> Void) {
    (self.exitNow, self.handler) = (exitNow, handler)
  }

  /// From here on the signals come as events. Call it before anything that a stop would have to clean up.
  public func start() {
    signal(SIGPIPE, SIG_IGN)
    for number in [SIGTERM, SIGINT, SIGHUP] {
      signal(number, SIG_IGN)  // else the default action is taken beside the event
      let source = DispatchSource.makeSignalSource(signal: number, queue: executor.queue)
      source.setEventHandler { [weak self] in self?.assumeIsolated { $0.came(number) } }
      sources.append(source)
      source.activate()
    }
  }

  private func came(_ number: Int32) {
    guard number != SIGHUP else { return handler(.reload) }
    if isStopping { return exitNow(128 + number) }
    isStopping = true
    handler(.stop)
  }
}
