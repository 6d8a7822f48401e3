/// When a namespace's next upload is due. Requests within one window are one upload (docs/delivery.md, "When").
///
/// All times are on the uptime clock. Nothing is due without a request: an idle namespace has no timer.
struct UploadSchedule: Sendable, Equatable {
  /// The window in which realtime reports are one upload.
  static let realtimeWindow: Duration = .seconds(2)
  /// A network that comes back does so for a whole site at once.
  static let networkJitter: Duration = .seconds(2)

  enum UploadRequest: Sendable, Equatable, CaseIterable {
    /// Reports were stored; the throttled timer takes them.
    case rows
    case realtime
    /// As realtime, and not held back by the metered interval.
    case crash
    case network
    case start
    case flush
  }

  private var times = RequestTimes()
  /// - Parameter random: any number; jitter is drawn from it.
  mutating func requestUpload(_ request: UploadRequest, now: Duration, interval: Duration, random: UInt64) {
    switch request {
    // Never later than the interval, up to a fifth earlier: a fleet that was started together drifts apart.
    case .rows: times.request(at: now + interval - (interval / 5).share(random))
    case .realtime: times.request(at: now + Self.realtimeWindow)
    case .crash: times.hasten(to: now + Self.realtimeWindow)
    case .network: times.request(at: now + Self.networkJitter.share(random))
    case .start, .flush: times.hasten(to: now)
    }
  }

  /// nil without a request. - Parameter spacing: the least time between uploads, on metered networks; nil elsewhere.
  func due(spacing: Duration?) -> Duration? { times.due(spacing: spacing) }

  /// An upload begins: every request so far is one with it.
  mutating func begin(now: Duration) { times.begin(now: now) }
}

/// Requests that are merged until the next begin. All times are on the uptime clock.
struct RequestTimes: Sendable, Equatable {
  private var ordinaryAt: Duration?
  private(set) var urgentAt: Duration?
  private var lastBegin: Duration?
  var isRequested: Bool { ordinaryAt != nil || urgentAt != nil }

  mutating func request(at instant: Duration) { ordinaryAt = min(ordinaryAt ?? instant, instant) }
  /// The spacing does not hold it back.
  mutating func hasten(to instant: Duration) { urgentAt = min(urgentAt ?? instant, instant) }
  mutating func begin(now: Duration) { (ordinaryAt, urgentAt, lastBegin) = (nil, nil, now) }

  /// nil without a request. - Parameter spacing: the least time since the last begin; nil: no spacing.
  func due(spacing: Duration?) -> Duration? {
    let earliest = spacing.flatMap { spacing in lastBegin.map { $0 + spacing } } ?? .zero
    guard let ordinary = ordinaryAt.map({ max($0, earliest) }) else { return urgentAt }
    return min(ordinary, urgentAt ?? ordinary)
  }
}
