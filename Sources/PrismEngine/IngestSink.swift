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

  init(store: ReportStore, time: any TimeSource, feed: ReportFeed) {
    (self.store, self.time, self.feed) = (store, time, feed)
  }

  var counters: CommitCounters { counts.withLock { $0 } }

  func set(_ pipelines: [NamespaceName: NamespacePipeline]) { self.pipelines.withLock { $0 = pipelines } }

  func append(_ batches: [ReportBatch], whenDone: @escaping @Sendable (CommitOutcome) -> Void) {
    store.inTurn { [self] store in
      let began = time.uptime
      let outcome = store.append(batches)
      if feed.hasFollowers { feed.publish(batches, outcome, now: time.unixMilliseconds) }
      note(batches, outcome, in: time.uptime - began)
      whenDone(outcome)
    }
  }

  private func note(_ batches: [ReportBatch], _ outcome: CommitOutcome, in duration: Duration) {
    guard case .committed = outcome else { return counts.withLock { $0.failed() } }
    counts.withLock { $0.committed(rows: batches.reduce(0) { $0 + $1.rows.count }, in: duration) }
    let pipelines = pipelines.withLock { $0 }
    for batch in batches {
      guard let pipeline = pipelines[batch.namespace], pipeline.wishes.post(batch) else { continue }
      Task { await pipeline.wake() }
    }
  }
}
