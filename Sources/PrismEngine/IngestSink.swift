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
  private let counts = Mutex(CommitCounters())
  private let feed: ReportFeed
  private let trace: PacketLog

  init(store: ReportStore, time: any TimeSource, feed: ReportFeed, log: Logger) {
    (self.store, self.time, self.feed, trace) = (store, time, feed, PacketLog(log))
  }

  var counters: CommitCounters { counts.withLock { $0 } }

  func set(_ pipelines: [NamespaceName: NamespacePipeline]) { self.pipelines.withLock { $0 = pipelines } }

  func append(
    _ batches: [ReportBatch], notes: [BatchNote], whenDone: @escaping @Sendable (CommitOutcome) -> Void
  ) {
    store.inTurn { [self] store in
      let began = time.uptime
      let outcome = store.append(batches, notes: notes)
      if feed.hasFollowers { feed.publish(batches, outcome, now: time.unixMilliseconds) }
      note(batches, outcome, in: time.uptime - began)
      whenDone(outcome)
    }
  }

  func note(_ key: String, of namespace: NamespaceName) async -> [UInt8]? { try? await store.note(namespace, key) }

  private func note(_ batches: [ReportBatch], _ outcome: CommitOutcome, in duration: Duration) {
    guard case .committed(let outcomes) = outcome else { return counts.withLock { $0.failed() } }
    trace.admitted(batches, outcomes)
    counts.withLock { $0.committed(rows: batches.reduce(0) { $0 + $1.rows.count }, in: duration) }
    let pipelines = pipelines.withLock { $0 }
    for batch in batches {
      guard let pipeline = pipelines[batch.namespace], pipeline.signal.post(batch) else { continue }
      Task { await pipeline.wake() }
    }
  }
}
