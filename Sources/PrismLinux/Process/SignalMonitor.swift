import Dispatch
import Glibc
import PrismBase

/// SIGTERM and SIGINT ask for a stop, a second one of either ends the process at once; SIGHUP asks for a reload; SIGPIPE
/// is ignored (prismd(8), "SIGNALS").
public actor SignalMonitor {
  /// A stop for SIGTERM and SIGINT, a reload for SIGHUP.
  public enum Event: Sendable, Equatable { case stop, reload }

  private nonisolated let executor = DispatchQueueExecutor(label: "prism.signals")
  private let handler: @Sendable (Event) -> Void
  private let exitNow: @Sendable (Int32) -> Void
  /// nil: the signals end the process.
  private let pipe: SignalPipe?
  private var source: (any DispatchSourceRead)?
  private var isStopping = false

  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Signals are kept from here on, and until the process ends; `start` passes them on.
  /// - Parameter handler: called on the monitor's queue; it must not block for long.
  public init(handler: @escaping @Sendable (Event) -> Void) {
    self.init(exitNow: { _exit($0) }, handler: handler)
  }

  init(exitNow: @escaping @Sendable (Int32) -> Void, handler: @escaping @Sendable (Event) -> Void) {
    (self.exitNow, self.handler) = (exitNow, handler)
    signal(SIGPIPE, SIG_IGN)
    pipe = SignalPipe([SIGTERM, SIGINT, SIGHUP])
  }

  /// From here on the signals come as events, those that came since `init` at once. Call it once.
  public func start() {
    precondition(source == nil, "signals are watched once")
    guard let pipe else { return }
    let source = DispatchSource.makeReadSource(fileDescriptor: pipe.descriptor, queue: executor.queue)
    source.setEventHandler { self.assumeIsolated { $0.handle(pipe.read()) } }
    source.activate()
    self.source = source
  }

  private func handle(_ came: [Int32]) {
    if came.contains(SIGHUP) { handler(.reload) }
    for number in came where number != SIGHUP { stop(number) }
  }

  private func stop(_ number: Int32) {
    if isStopping { return exitNow(128 + number) }
    isStopping = true
    handler(.stop)
  }
}
