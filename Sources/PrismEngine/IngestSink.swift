import PrismConfig
import PrismProtocol
import PrismStore
import Synchronization

/// Takes admitted reports to the store, and tells the pipelines of namespaces that have something to send.
final class IngestSink: ReportSink {
  private let store: ReportStore
  private let pipelines = Mutex<[NamespaceName: NamespacePipeline]>([:])

  init(store: ReportStore) { self.store = store }

  func set(_ pipelines: [NamespaceName: NamespacePipeline]) { self.pipelines.withLock { $0 = pipelines } }

  func append(_ batches: [ReportBatch]) async -> CommitOutcome {
    let outcome = await store.append(batches)
    guard case .committed = outcome else { return outcome }
    let pipelines = pipelines.withLock { $0 }
    for batch in batches {
      guard let pipeline = pipelines[batch.namespace], pipeline.wishes.post(batch) else { continue }
      Task { await pipeline.wake() }
    }
    return outcome
  }
}
