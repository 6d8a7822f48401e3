import CArguments
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
  /// The pipe's end that is read; -1: there is no pipe, and the signals end the process.
  private let descriptor: Int32
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
    descriptor = prism_take_signals([SIGTERM, SIGINT, SIGHUP], 3)
  }

  /// From here on the signals come as events, those that came since `init` at once. Call it once.
  public func start() {
    precondition(source == nil, "signals are watched once")
    guard descriptor >= 0 else { return }
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: executor.queue)
    source.setEventHandler { self.assumeIsolated { $0.read() } }
    source.activate()
    self.source = source
  }

  private func read() {
    var numbers = [UInt8](repeating: 0, count: 64)
    let count = Glibc.read(descriptor, &numbers, numbers.count)
    let came = numbers.prefix(max(0, count)).map { Int32($0) }
    if came.contains(SIGHUP) { handler(.reload) }
    for number in came where number != SIGHUP { stop(number) }
  }

  private func stop(_ number: Int32) {
    if isStopping { return exitNow(128 + number) }
    isStopping = true
    handler(.stop)
  }
}
