/// When a namespace's records are synchronized next (docs/records.md). Nothing is due without a request. All times are on
/// the uptime clock.
struct RecordSchedule: Sendable, Equatable {
  /// Changes that follow the first one within it go together.
  static let mergeWindow: Duration = .seconds(2)

  private var times = RequestTimes()
  /// A synchronization begins, and its changes are not claimed yet.
  private(set) var isBeginning = false

  /// Changes wait for a synchronization.
  var isRequested: Bool { times.isRequested }
  /// The next one does not wait for the interval.
  var isHastened: Bool { times.urgentAt != nil }

  /// A change was committed, or some were left over.
  mutating func request(now: Duration) { times.request(at: now + Self.mergeWindow) }

  /// The interval does not hold it back: an operator asked, the daemon starts, or the network is back.
  mutating func hasten(to instant: Duration) { times.hasten(to: instant) }

  /// - Parameter interval: the least time between synchronizations.
  func due(interval: Duration) -> Duration? { times.due(spacing: interval) }

  /// A synchronization begins: every request so far is one with it.
  mutating func begin(now: Duration) {
    times.begin(now: now)
    isBeginning = true
  }

  /// Its changes are being claimed.
  mutating func didBegin() { isBeginning = false }
}

/// When a namespace's tables are asked for the server's changes (docs/records.md). All times are on the uptime clock.
struct PullSchedule: Sendable, Equatable {
  /// At the start, before the first question.
  private var lastBegin: Duration?
  private var urgentAt: Duration?
  private var pausedUntil: Duration?
  private(set) var failuresInRow = 0
  /// A round of questions is under way.
  private(set) var isRunning = false
  /// The newest number of an operation that a collector announced.
  private var announced: Int64 = 0

  /// - Parameter interval: between rounds without a reason to ask sooner.
  /// - Returns: nil while a round is under way.
  func due(interval: Duration) -> Duration? {
    guard !isRunning else { return nil }
    let ordinary = lastBegin.map { $0 + interval } ?? .zero
    return max(min(ordinary, urgentAt ?? ordinary), pausedUntil ?? .zero)
  }

  /// The interval does not hold it back: an operator asked, or the server has news.
  mutating func hasten(to instant: Duration) { urgentAt = min(urgentAt ?? instant, instant) }

  /// The cause of a failure may be gone: the network is back, or the configuration changed.
  mutating func retry(at instant: Duration) {
    pausedUntil = nil
    hasten(to: instant)
  }

  /// An answer to an upload named the newest operation. - Returns: whether that is news.
  mutating func announce(_ sequence: Int64, now: Duration) -> Bool {
    guard sequence > announced else { return false }
    announced = sequence
    hasten(to: now)
    return true
  }

  mutating func begin(now: Duration) {
    (isRunning, lastBegin, urgentAt) = (true, now, nil)
  }

  /// The round is over. - Parameter next: operations are left that wait for others.
  mutating func end(failed pause: Duration?, now: Duration) {
    isRunning = false
    guard let pause else {
      (failuresInRow, pausedUntil) = (0, nil)
      return
    }
    failuresInRow += 1
    pausedUntil = now + pause
    hasten(to: now + pause)
  }
}
