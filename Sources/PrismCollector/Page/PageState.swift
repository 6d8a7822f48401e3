import PrismBase
import Synchronization

/// The state that all readers share: those of the page, and devices that ask for records.
final class PageState: Sendable {
  /// Readers' questions that are worked on: the others wait. Each may hold a page of some MiB until it is written down.
  let reading = ReadGate(countMax: 8)
  /// Questions of devices for records.
  let asking = ReadGate()
  let snapshots: RecordSnapshots
  let exports: Exports
  let symbols: Symbolizer
  let tails: TailLooks
  let erasures: ErasureDesk
  let crashStates: CrashStateStore
  let notices: NoticeStore
  let jobs: JobStore
  /// Live tails, which end when the collector stops.
  var tailing: ReadGate { tails.gate }
  /// Crashes, releases and devices that are held in memory, by their readers' namespaces.
  private let views = Mutex<[Scope: View]>([:])
  /// When the collector started, milliseconds since 1970: its counts begin then.
  let startTime: Int64

  init(_ options: CollectorOptions, time: any TimeSource, log: Logger) {
    symbols = Symbolizer(options.symbolFolder, log: log)
    (tails, startTime) = (TailLooks(time: time), time.unixMilliseconds)
    (snapshots, exports) = (RecordSnapshots(folder: options.state), Exports(folder: options.state))
    erasures = ErasureDesk(state: options.state, time: time, log: log)
    notices = NoticeStore(options.fleet)
    jobs = JobStore(options.fleet)
    crashStates = CrashStateStore(options.fleet)
  }
}

extension PageState {
  fileprivate struct View {
    let crashes: CrashIndex, releases: ReleaseIndex
    let devices = DeviceIndex()
  }

  /// Lists of namespaces whose crashes and devices are held; past it another list's are forgotten, and read again.
  private static let viewsMax = 32

  private func view(of scope: Scope) -> View {
    let scope = scope.ofDevices
    return views.withLock { views in
      if let known = views[scope] { return known }
      if views.count >= Self.viewsMax, let other = views.keys.first(where: \.isLimited) { views[other] = nil }
      let view = View(crashes: CrashIndex(scope, symbols: symbols), releases: ReleaseIndex(scope))
      views[scope] = view
      return view
    }
  }

  func crashes(of scope: Scope) -> CrashIndex { view(of: scope).crashes }
  func releases(of scope: Scope) -> ReleaseIndex { view(of: scope).releases }
  func devices(of scope: Scope) -> DeviceIndex { view(of: scope).devices }

  /// Something changed here that the next answer about devices must show.
  func forgetDevices() { for view in views.withLock({ Array($0.values) }) { view.devices.change() } }
}

/// Bounds how many of one thing there are at a time: each holds memory, and questions share one connection.
final class ReadGate: Sendable {
  static let questionsMax = 32

  /// One of them, until its last reference is gone.
  final class Place: Sendable {
    private let gate: ReadGate

    fileprivate init(_ gate: ReadGate) { self.gate = gate }
    deinit { gate.leave() }
  }

  private let countMax: Int
  private let refusal: CollectorRefusal
  private let state = Mutex(State())

  private struct State {
    var open = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
    var isClosed = false
  }

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

  /// Questions that wait for their turn.
  var waitingCount: Int { state.withLock { $0.waiting.count } }

  private func leave() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
      state.open -= 1
      return nil
    }
    next?.resume()
  }

  /// Waits for a place; those that came first have it first.
  private func wait() async -> Place {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        guard state.open < countMax else {
          state.waiting.append(continuation)
          return false
        }
        state.open += 1
        return true
      }
      if isFree { continuation.resume() }
    }
    return Place(self)
  }

  /// Runs it when it is its turn.
  func inTurn<Result: Sendable>(
    _ body: () async throws(CollectorRefusal) -> Result
  ) async throws(CollectorRefusal) -> Result {
    let place = await wait()
    defer { withExtendedLifetime(place) {} }
    return try await body()
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
