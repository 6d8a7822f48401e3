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

  private var ordinaryAt: Duration?
  private var urgentAt: Duration?
  private var lastUploadAt: Duration?

  init() {}

  /// - Parameter random: any number; jitter is drawn from it.
  mutating func requestUpload(_ request: UploadRequest, now: Duration, interval: Duration, random: UInt64) {
    switch request {
    // Never later than the interval, up to a fifth earlier: a fleet that was started together drifts apart.
    case .rows: ordinaryAt = earlier(ordinaryAt, now + interval - (interval / 5).share(random))
    case .realtime: ordinaryAt = earlier(ordinaryAt, now + Self.realtimeWindow)
    case .crash: urgentAt = earlier(urgentAt, now + Self.realtimeWindow)
    case .network: ordinaryAt = earlier(ordinaryAt, now + Self.networkJitter.share(random))
    case .start, .flush: urgentAt = now
    }
  }

  /// nil without a request. - Parameter spacing: the least time between uploads, on metered networks; nil elsewhere.
  func due(spacing: Duration?) -> Duration? {
    earlier(urgentAt, ordinaryAt.map { max($0, earliestOrdinary(spacing)) })
  }

  /// An upload begins: every request so far is one with it.
  mutating func begin(now: Duration) {
    (ordinaryAt, urgentAt, lastUploadAt) = (nil, nil, now)
  }

  private func earliestOrdinary(_ spacing: Duration?) -> Duration {
    guard let spacing, let lastUploadAt else { return .zero }
    return lastUploadAt + spacing
  }
}

private func earlier(_ a: Duration?, _ b: Duration?) -> Duration? {
  guard let a, let b else { return a ?? b }
  return min(a, b)
}
