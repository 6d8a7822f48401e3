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

    func takes(_ event: ReportEvent) -> Bool {
      if isRefusedOnly, [.stored, .duplicate, .sampled, .collapsed].contains(event.outcome) { return false }
      return (namespace == nil || namespace == event.name.namespace) && (type == nil || type == event.name.type)
    }
  }

  private let count = Atomic<Int>(0)
  private let followers = Mutex<[ObjectIdentifier: Follower]>([:])

  /// Without followers.
  public init() {}

  /// Whether a reader follows.
  public var hasFollowers: Bool { count.load(ordering: .relaxed) > 0 }

  /// - Returns: what follows from now on, until the subscription is let go of.
  public func follow(_ filter: Filter) -> FeedSubscription {
    let follower = Follower(filter)
    followers.withLock { followers in
      followers[ObjectIdentifier(follower)] = follower
      count.store(followers.count, ordering: .relaxed)
    }
    return FeedSubscription(follower: follower, feed: self)
  }

  func end(_ follower: Follower) {
    followers.withLock { followers in
      followers[ObjectIdentifier(follower)] = nil
      count.store(followers.count, ordering: .relaxed)
    }
    follower.end()
  }

  /// Shows `events` to those who asked for them.
  public func publish(_ events: [ReportEvent]) {
    let followers = followers.withLock { Array($0.values) }
    for follower in followers { follower.offer(events) }
  }

  // MARK: From a commit

  /// Publishes an event for each report of a commit. - Parameter now: milliseconds since 1970.
  public func publish(_ batches: [ReportBatch], _ outcome: CommitOutcome, now: Int64) {
    switch outcome {
    case .committed(let outcomes):
      for (batch, outcome) in zip(batches, outcomes) { publish(Self.events(batch, outcome, now)) }
    case .failed(let refusal):
      for batch in batches {
        publish(batch.rows.map { Self.event($0, of: batch, .refused(refusal.code), nil, now) })
      }
    }
  }

  private static func events(_ batch: ReportBatch, _ outcome: BatchOutcome, _ now: Int64) -> [ReportEvent] {
    var exceptions = outcome.exceptions[...]
    return batch.rows.enumerated().map { index, row in
      let id = outcome.ids.indices.contains(index) ? outcome.ids[index].reportID(epoch: outcome.epoch) : nil
      guard exceptions.first?.row == index, let exception = exceptions.popFirst() else {
        return event(row, of: batch, .stored, id, now)
      }
      switch exception.what {
      case .duplicate: return event(row, of: batch, .duplicate, id, now)
      case .collapsed: return event(row, of: batch, .collapsed, id, now)
      case .sampledOut: return event(row, of: batch, .sampled, nil, now)
      case .refused(let refusal): return event(row, of: batch, .refused(refusal.code), nil, now)
      }
    }
  }

  /// - Parameter id: the report id that was made for it, if the client gave no id.
  private static func event(
    _ row: ReportBatch.Row, of batch: ReportBatch, _ outcome: ReportEvent.Outcome, _ id: String?, _ now: Int64
  ) -> ReportEvent {
    let given = row.clientReportID.map { String(decoding: batch.arena[$0], as: UTF8.self) }
    return ReportEvent(
      time: now, outcome: outcome,
      name: ReportName(namespace: batch.namespace.text, type: batch.types[row.type].type.text, reportID: given ?? id),
      metaBytes: row.metaBytes, payloadBytes: row.payload?.count)
  }
}
