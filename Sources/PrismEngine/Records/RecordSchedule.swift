import PrismProtocol

/// When a namespace's records are synchronized next (docs/records.md). Nothing is due without a request. All times are on
/// the uptime clock.
struct RecordSchedule: Sendable, Equatable {
  /// Changes that follow the first one within it go together.
  static let mergeWindow: Duration = .seconds(2)

  /// The last change that the synchronization under way takes.
  var bound: Int64 = 0
  private var requestedAt: Duration?
  private var urgentAt: Duration?
  private var lastBegin: Duration?
  /// A synchronization begins, and its changes are not claimed yet.
  private(set) var isBeginning = false

  /// Changes wait for a synchronization.
  var isRequested: Bool { requestedAt != nil || urgentAt != nil }
  /// The next one does not wait for the interval.
  var isHastened: Bool { urgentAt != nil }

  /// A change was committed, or some were left over.
  mutating func request(now: Duration) { if requestedAt == nil { requestedAt = now + Self.mergeWindow } }

  /// The interval does not hold it back: an operator asked, the daemon starts, or the network is back.
  mutating func hasten(to instant: Duration) { urgentAt = min(urgentAt ?? instant, instant) }

  /// - Parameter interval: the least time between synchronizations.
  func due(interval: Duration) -> Duration? {
    let ordinary = requestedAt.map { max($0, lastBegin.map { $0 + interval } ?? .zero) }
    guard let ordinary, let urgentAt else { return ordinary ?? urgentAt }
    return min(ordinary, urgentAt)
  }

  /// A synchronization begins: every request so far is one with it.
  mutating func begin(now: Duration) { (requestedAt, urgentAt, lastBegin, isBeginning) = (nil, nil, now, true) }

  /// Its changes are being claimed.
  mutating func didBegin() { isBeginning = false }
}
