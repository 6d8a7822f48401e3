import PrismBase
public import PrismControl
public import PrismProtocol
import Synchronization

/// Tells those who follow (`prismctl tail`) of each report that is admitted or refused. While no reader follows, it costs one
/// load of a number.
public final class ReportFeed: Sendable {
  /// The reports that one follower asked for.
  public struct Filter: Sendable {
    var namespace: String?, type: String?
    var isRefusedOnly: Bool

    /// nil takes all.
    public init(namespace: String? = nil, type: String? = nil, isRefusedOnly: Bool = false) {
      (self.namespace, self.type, self.isRefusedOnly) = (namespace, type, isRefusedOnly)
    }

    func takes(_ report: TailReport) -> Bool {
      (report.isRefused || !isRefusedOnly) && (namespace == nil || namespace == report.namespace)
        && (type == nil || type == report.type)
    }
  }

  fileprivate struct Place: Sendable {
    weak var subscription: FeedSubscription?
  }

  private let count = Atomic<Int>(0)
  private let followers = Mutex<[ObjectIdentifier: Place]>([:])

  /// Without followers.
  public init() {}

  /// Whether a reader follows.
  public var hasFollowers: Bool { count.load(ordering: .relaxed) > 0 }

  /// - Returns: what follows from now on, until it is let go of.
  public func follow(_ filter: Filter) -> FeedSubscription {
    let subscription = FeedSubscription(filter, of: self)
    set(Place(subscription: subscription), for: ObjectIdentifier(subscription))
    return subscription
  }

  fileprivate func set(_ place: Place?, for follower: ObjectIdentifier) {
    followers.withLock { followers in
      followers[follower] = place
      count.store(followers.count, ordering: .relaxed)
    }
  }

  /// Shows `reports` to those who asked for them. - Parameter now: milliseconds since 1970.
  public func publish(_ reports: [TailReport], now: Int64) {
    if reports.isEmpty { return }
    var reports = reports
    let time = RFC3339.text(unixMilliseconds: now)
    for index in reports.indices { reports[index].time = time }
    for follower in followers.withLock({ $0.values.compactMap(\.subscription) }) { follower.offer(reports) }
  }

  /// Shows each report of a commit. - Parameter now: milliseconds since 1970.
  public func publish(_ batches: [ReportBatch], _ outcome: CommitOutcome, now: Int64) {
    for (index, batch) in batches.enumerated() {
      switch outcome {
      case .committed(let outcomes): publish(Self.reports(batch, outcomes[index]), now: now)
      case .failed(let refusal):
        publish(batch.rows.map { Self.report($0, of: batch, .refused(refusal), nil) }, now: now)
      }
    }
  }

  private static func reports(_ batch: ReportBatch, _ outcome: BatchOutcome) -> [TailReport] {
    var exceptions = outcome.exceptions[...]
    return batch.rows.enumerated().map { index, row in
      let id = outcome.ids.indices.contains(index) ? outcome.ids[index].reportID(epoch: outcome.epoch) : nil
      return report(row, of: batch, exceptions.first?.row == index ? exceptions.popFirst()?.what : nil, id)
    }
  }

  /// - Parameter id: the report id that was made for it, if the client gave no id.
  private static func report(
    _ row: ReportBatch.Row, of batch: ReportBatch, _ exception: BatchOutcome.Exception?, _ id: String?
  ) -> TailReport {
    var report = TailReport()
    (report.namespace, report.type) = (batch.namespace.text, batch.types[row.type].type.text)
    (report.metaBytes, report.payloadBytes) = (row.metaBytes, row.payload?.count)
    report.reportId = row.clientReportID.map { String(decoding: batch.arena[$0], as: UTF8.self) }
    switch exception {
    case nil: (report.outcome, report.reportId) = ("stored", report.reportId ?? id)
    case .duplicate: (report.outcome, report.reportId) = ("duplicate", report.reportId ?? id)
    case .collapsed: (report.outcome, report.reportId) = ("collapsed", report.reportId ?? id)
    case .sampledOut: report.outcome = "sampled"
    case .refused(let refusal): (report.outcome, report.code) = ("refused", refusal.code.rawValue)
    }
    return report
  }
}

/// A follower's place in the feed, with the reports that it has not read yet: at most `itemsMax`, then the number of those that
/// it missed. Letting go of it gives the place up.
public final class FeedSubscription: Sendable {
  static let itemsMax = 1024

  private struct State {
    var items = Ring<FeedItem>()
    var waiter: CheckedContinuation<FeedItem?, Never>?
    var isEnded = false

    mutating func add(_ report: TailReport) {
      guard items.count >= FeedSubscription.itemsMax else { return items.append(.report(report)) }
      let isCounted = items.withLast { last in
        guard case .skipped(let count) = last else { return false }
        last = .skipped(count + 1)
        return true
      }
      if isCounted != true { items.append(.skipped(1)) }
    }
  }

  private let filter: ReportFeed.Filter
  private let feed: ReportFeed
  private let state = Mutex(State())

  fileprivate init(_ filter: ReportFeed.Filter, of feed: ReportFeed) { (self.filter, self.feed) = (filter, feed) }

  deinit { feed.set(nil, for: ObjectIdentifier(self)) }

  /// Never waits.
  fileprivate func offer(_ reports: [TailReport]) {
    let wanted = reports.filter(filter.takes)
    guard !wanted.isEmpty else { return }
    let (waiter, item) = state.withLock { state -> (CheckedContinuation<FeedItem?, Never>?, FeedItem?) in
      for report in wanted { state.add(report) }
      guard let waiter = state.waiter.take() else { return (nil, nil) }
      return (waiter, state.items.removeFirst())
    }
    waiter?.resume(returning: item)
  }

  /// Waits for the next report. One reader only. - Returns: nil if the task was cancelled.
  public func next() async -> FeedItem? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (isKnown, item) = state.withLock { state -> (Bool, FeedItem?) in
          if let item = state.items.removeFirst() { return (true, item) }
          if !state.isEnded { state.waiter = continuation }
          return (state.isEnded, nil)
        }
        if isKnown { continuation.resume(returning: item) }
      }
    } onCancel: {
      let waiter = state.withLock { state in
        state.isEnded = true
        return state.waiter.take()
      }
      waiter?.resume(returning: nil)
    }
  }
}

/// One item that a reader of the feed gets.
public enum FeedItem: Sendable, Equatable {
  /// A report that was admitted or refused.
  case report(TailReport)
  /// This many reports came while the reader was behind; they are not shown.
  case skipped(Int)
}

/// Refused reports, kept for the feed while a reader follows.
struct FollowedRefusals: Sendable {
  var areKept = false
  private var kept: [TailReport] = []

  mutating func note(_ report: @autoclosure () -> TailReport, _ code: RefusalCode) {
    guard areKept else { return }
    var report = report()
    (report.outcome, report.code) = ("refused", code.rawValue)
    kept.append(report)
  }

  mutating func take() -> [TailReport] {
    defer { kept = [] }
    return kept
  }
}

extension TailReport {
  private static let charactersMax = 128

  /// The names that a report gives itself: its client's own words, cut to a name's length.
  init(_ report: ScannedReport, in line: Span<UInt8>) {
    func cut(_ text: ScannedString?) -> String? { text.map { String($0.string(in: line).prefix(Self.charactersMax)) } }
    self.init()
    (namespace, type) = (cut(report.namespace) ?? NamespaceName.prism.text, cut(report.type))
    reportId = cut(report.reportID)
  }
}
