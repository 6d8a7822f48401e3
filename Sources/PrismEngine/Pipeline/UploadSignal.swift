import PrismProtocol
import Synchronization

/// Signals to a namespace's pipeline that a commit added rows. It signals once until the pipeline acts on it, so that
/// ingest costs the pipeline nothing while it works or its timer runs.
final class UploadSignal: Sendable {
  /// Uploads that stored rows ask for. It is a set of bits, because each batch of each commit adds to it.
  struct Requests: OptionSet, Sendable {
    let rawValue: UInt64
    static let realtime = Requests(rawValue: 1)
    static let crash = Requests(rawValue: 2)
    static let released = Requests(rawValue: 32)
    static func rows(_ kind: RowKind) -> Requests { Requests(rawValue: 4 << kind.number) }

    /// Of reports.
    var hasRows: Bool { subtracting([.rows(.records), .released]).rawValue >= 4 }
  }

  private struct State {
    /// Said, and not acted on yet.
    var told: Requests = []
    /// Of these, what the pipeline has not seen.
    var fresh: Requests = []
  }

  private let state = Mutex(State())

  /// Rows of `batch` are committed. - Parameter hasReleased: they let kept ones go, which leave at once.
  /// - Returns: the pipeline must be woken.
  func post(_ batch: ReportBatch, hasReleased: Bool = false) -> Bool {
    state.withLock { state in
      let wasFresh = !state.fresh.isEmpty
      var news: Requests = batch.record != nil ? .rows(.records) : batch.leaves ? .rows(.meta) : []
      if batch.leaves && !state.told.contains(.rows(.payload)) && batch.rows.contains(where: { $0.payload != nil }) {
        news.insert(.rows(.payload))
      }
      for type in batch.types where type.isRealtime {
        news.formUnion(type.priority == .crash ? [.realtime, .crash] : .realtime)
      }
      if hasReleased { news.formUnion([.rows(.meta), .rows(.payload), .realtime, .released]) }
      state.fresh.formUnion(news.subtracting(state.told))
      state.told.formUnion(news)
      return !wasFresh && !state.fresh.isEmpty
    }
  }

  /// The changes since the last call.
  func takeFresh() -> Requests {
    state.withLock { state in
      defer { state.fresh = [] }
      return state.fresh
    }
  }

  /// A claim of this kind follows: rows stored from now on are news.
  func willClaim(_ kind: RowKind) { state.withLock { _ = $0.told.remove(.rows(kind)) } }

  /// An upload begins: realtime reports stored from now on ask for another one.
  func willUpload() { state.withLock { $0.told.subtract([.realtime, .crash, .released]) } }

  /// Rows were stored since `willClaim`.
  func hasRows(_ kind: RowKind) -> Bool { state.withLock { $0.told.contains(.rows(kind)) } }
}
