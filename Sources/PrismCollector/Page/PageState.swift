import PrismBase
import Synchronization

/// The state that all readers share: those of the page, and devices that ask for records.
final class PageState: Sendable {
  /// Of live tails at a time.
  static let tailsMax = 64

  let reading = ReadGate()
  /// Questions of devices for records.
  let asking = ReadGate()
  let snapshots: RecordSnapshots
  let exports: Exports
  let crashes: CrashIndex
  let symbols: Symbolizer
  let devices = DeviceIndex()
  let tails: TailLooks
  let crashStates: CrashStateStore
  let notices: NoticeStore
  /// When the collector started, milliseconds since 1970: its counts begin then.
  let startTime: Int64
  private let state = Mutex((tails: 0, isClosed: false))

  init(_ options: CollectorOptions, time: any TimeSource, log: Logger) {
    symbols = Symbolizer(options.symbolFolder, log: log)
    crashes = CrashIndex(symbols: symbols)
    (tails, startTime) = (TailLooks(time: time), time.unixMilliseconds)
    (snapshots, exports) = (RecordSnapshots(folder: options.state), Exports(folder: options.state))
    notices = NoticeStore(options.fleet)
    crashStates = CrashStateStore(options.fleet)
  }

  /// The collector stops: tails end.
  func close() { state.withLock { $0.isClosed = true } }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// - Throws: 503 where too many tails are open.
  func tail<Result: Sendable>(
    _ body: () async throws(CollectorRefusal) -> Result
  ) async throws(CollectorRefusal) -> Result {
    let isTaken = state.withLock { state in
      guard state.tails < Self.tailsMax, !state.isClosed else { return false }
      state.tails += 1
      return true
    }
    guard isTaken else {
      throw CollectorRefusal(503, "\(Self.tailsMax) live tails are open; close one", retryAfterSeconds: 5)
    }
    defer { state.withLock { $0.tails -= 1 } }
    return try await body()
  }
}
