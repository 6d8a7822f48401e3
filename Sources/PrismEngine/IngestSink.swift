import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol
import PrismStore
import Synchronization

/// Takes admitted reports to the store, and tells the pipelines of namespaces that have something to send.
final class IngestSink: ReportSink {
  private let store: ReportStore
  private let time: any TimeSource
  private let pipelines = Mutex<[NamespaceName: NamespacePipeline]>([:])
  private let rules = Mutex<[NamespaceName: ReportRules]>([:])
  private let counts = Mutex(CommitCounters())
  private let feed: ReportFeed
  private let trace: PacketLog
  private let sealing: PayloadSealing

  init(store: ReportStore, sealing: PayloadSealing, time: any TimeSource, feed: ReportFeed, log: Logger) {
    (self.store, self.sealing, self.time, self.feed, trace) = (store, sealing, time, feed, PacketLog(log))
  }

  var counters: CommitCounters { counts.withLock { $0 } }

  func set(_ pipelines: [NamespaceName: NamespacePipeline]) { self.pipelines.withLock { $0 = pipelines } }

  /// The rules by which reports are stored from now on.
  func set(_ snapshot: Snapshot) {
    let rules = snapshot.namespaces.mapValues {
      ReportRules(
        enrichments: $0.enrichments, triggers: $0.triggers, countsHealth: $0.countsHealth,
        reductions: $0.monitorList.reductions,
        serverTypes: $0.hasCommands ? snapshot.daemon.commands.triggerTypes : [])
    }.filter { $0.value != ReportRules() }
    self.rules.withLock { $0 = rules }
  }

  func noteContention() { store.contention.note() }

  func append(
    _ batches: [ReportBatch], notes: [BatchNote], whenDone: @escaping @Sendable (CommitOutcome) -> Void
  ) {
    sealing.prepare(batches) { [self] prepared in
      switch prepared {
      case .success(let batches): commit(batches, notes: notes, whenDone: whenDone)
      case .failure:
        counts.withLock { $0.failed() }
        whenDone(.failed(.notSealed))
      }
    }
  }

  private func commit(
    _ batches: [ReportBatch], notes: [BatchNote], whenDone: @escaping @Sendable (CommitOutcome) -> Void
  ) {
    store.append(
      batches, notes: notes, rules: { [self] in rules.withLock { $0 } },
      whenDone: { [self] outcome, duration in
        if feed.hasFollowers { feed.publish(batches, outcome, now: time.unixMilliseconds) }
        note(batches, outcome, in: duration)
        whenDone(outcome)
      })
  }

  func note(_ key: String, of namespace: NamespaceName) async -> [UInt8]? { try? await store.note(namespace, key) }

  private func note(_ batches: [ReportBatch], _ outcome: CommitOutcome, in duration: Duration) {
    guard case .committed(let outcomes) = outcome else { return counts.withLock { $0.failed() } }
    trace.admitted(batches, outcomes)
    counts.withLock { $0.committed(rows: batches.reduce(0) { $0 + $1.rows.count }, in: duration) }
    let pipelines = pipelines.withLock { $0 }
    for index in batches.indices where outcomes[index].record?.hasChanged != false {
      guard let pipeline = pipelines[batches[index].namespace],
        pipeline.signal.post(batches[index], hasReleased: outcomes[index].hasReleased)
      else { continue }
      Task { await pipeline.wake() }
    }
  }
}

extension Refusal {
  fileprivate static let notSealed = Refusal(
    .internal, "a payload could not be sealed, and nothing was stored; try again", retryMilliseconds: 1000)
}
