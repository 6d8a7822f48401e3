import PrismBase
import Synchronization

/// The state that all readers share: those of the page, and devices that ask for records.
final class PageState: Sendable {
  let reading = ReadGate()
  /// Questions of devices for records.
  let asking = ReadGate()
  let snapshots: RecordSnapshots
  let exports: Exports
  private let indexes: (crashes: CrashIndex, releases: ReleaseIndex)
  var crashes: CrashIndex { indexes.crashes }
  var releases: ReleaseIndex { indexes.releases }
  let symbols: Symbolizer
  let devices = DeviceIndex()
  /// Live tails, which end when the collector stops, and what they look at.
  let tailing = ReadGate(countMax: 64, "64 live tails are open; close one", retryAfterSeconds: 5)
  let tails: TailLooks
  let crashStates: CrashStateStore
  let notices: NoticeStore
  /// When the collector started, milliseconds since 1970: its counts begin then.
  let startTime: Int64

  init(_ options: CollectorOptions, time: any TimeSource, log: Logger) {
    symbols = Symbolizer(options.symbolFolder, log: log)
    indexes = (CrashIndex(symbols: symbols), ReleaseIndex())
    (tails, startTime) = (TailLooks(time: time), time.unixMilliseconds)
    (snapshots, exports) = (RecordSnapshots(folder: options.state), Exports(folder: options.state))
    notices = NoticeStore(options.fleet)
    crashStates = CrashStateStore(options.fleet)
  }
}

/// Bounds how many of one thing there are at a time: each holds memory, and questions share one connection.
final class ReadGate: Sendable {
  static let questionsMax = 32

  /// One of them, until its last reference is gone.
  final class Place: Sendable {
    private let gate: ReadGate

    fileprivate init(_ gate: ReadGate) { self.gate = gate }
    deinit { gate.state.withLock { $0.open -= 1 } }
  }

  private let countMax: Int
  private let refusal: CollectorRefusal
  private let state = Mutex((open: 0, isClosed: false))

  /// - Parameter message: says that there are too many.
  init(
    countMax: Int = questionsMax, _ message: String = "too many questions at once; try again",
    retryAfterSeconds: Int = 1
  ) {
    self.countMax = countMax
    refusal = CollectorRefusal(503, message, retryAfterSeconds: retryAfterSeconds)
  }

  /// From now on there are no more.
  func close() { state.withLock { $0.isClosed = true } }

  var isClosed: Bool { state.withLock { $0.isClosed } }

  /// - Throws: 503 where there are too many.
  func take() throws(CollectorRefusal) -> Place {
    let isTaken = state.withLock { state in
      guard state.open < countMax, !state.isClosed else { return false }
      state.open += 1
      return true
    }
    guard isTaken else { throw refusal }
    return Place(self)
  }

  /// - Throws: 503 where there are too many.
  func run<Result: Sendable>(
    _ body: () async throws(CollectorRefusal) -> Result
  ) async throws(CollectorRefusal) -> Result {
    let place = try take()
    defer { withExtendedLifetime(place) {} }
    return try await body()
  }
}
