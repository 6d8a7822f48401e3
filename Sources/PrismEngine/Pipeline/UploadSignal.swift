import PrismProtocol
import Synchronization

/// Signals to a namespace's pipeline that a commit added rows. It signals once until the pipeline acts on it, so that
/// ingest costs the pipeline nothing while it works or its timer runs.
final class UploadSignal: Sendable {
  struct Requests: Sendable, Equatable {
    var rows = PerKind(false)
    var realtime = false
    var crash = false

    var isEmpty: Bool { !realtime && !crash && !rows.contains { $0 } }
  }

  fileprivate struct State {
    /// Said, and not acted on yet.
    var told = Requests()
    /// Of these, what the pipeline has not seen.
    var fresh = Requests()
  }

  private let state = Mutex(State())

  /// Rows of `batch` are committed. - Returns: the pipeline must be woken.
  func post(_ batch: ReportBatch) -> Bool {
    state.withLock { state in
      let wasFresh = !state.fresh.isEmpty
      state.tell(\.rows[.meta])
      if !state.told.rows[.payload] && batch.rows.contains(where: { $0.payload != nil }) {
        state.tell(\.rows[.payload])
      }
      for type in batch.types where type.isRealtime {
        state.tell(\.realtime)
        if type.priority == .crash { state.tell(\.crash) }
      }
      return !wasFresh && !state.fresh.isEmpty
    }
  }

  /// The changes since the last call.
  func takeFresh() -> Requests {
    state.withLock { state in
      defer { state.fresh = Requests() }
      return state.fresh
    }
  }

  /// A claim of this kind follows: rows stored from now on are news.
  func willClaim(_ kind: RowKind) { state.withLock { $0.told.rows[kind] = false } }

  /// An upload begins: realtime reports stored from now on ask for another one.
  func willUpload() { state.withLock { ($0.told.realtime, $0.told.crash) = (false, false) } }

  /// Rows were stored since `willClaim`.
  func hasRows(_ kind: RowKind) -> Bool { state.withLock { $0.told.rows[kind] } }
}

extension UploadSignal.State {
  mutating func tell(_ request: WritableKeyPath<UploadSignal.Requests, Bool>) {
    guard !told[keyPath: request] else { return }
    told[keyPath: request] = true
    fresh[keyPath: request] = true
  }
}
