import PrismProtocol
import Synchronization

/// Where a commit tells a namespace's pipeline that rows wait. Told once until the pipeline acts on it, so that ingest
/// costs the pipeline nothing while it is at work anyway or its timer runs.
final class WishBox: Sendable {
  struct Wishes: Sendable, Equatable {
    var rows = PerKind(false)
    var realtime = false
    var crash = false

    var isEmpty: Bool { self == Wishes() }
  }

  fileprivate struct State {
    /// Said, and not acted on yet.
    var told = Wishes()
    /// Of these, what the pipeline has not seen.
    var fresh = Wishes()
  }

  private let state = Mutex(State())

  /// Rows of `batch` are committed. - Returns: the pipeline must be woken.
  func post(_ batch: ReportBatch) -> Bool {
    state.withLock { state in
      let wasFresh = !state.fresh.isEmpty
      state.tell(\.rows.meta)
      if !state.told.rows.payload && batch.rows.contains(where: { $0.payload != nil }) {
        state.tell(\.rows.payload)
      }
      for type in batch.types where type.isRealtime {
        state.tell(\.realtime)
        if type.lane == .crash { state.tell(\.crash) }
      }
      return !wasFresh && !state.fresh.isEmpty
    }
  }

  /// What is new since the last time.
  func takeFresh() -> Wishes {
    state.withLock { state in
      defer { state.fresh = Wishes() }
      return state.fresh
    }
  }

  /// A claim of this kind follows: rows stored from now on are news.
  func willClaim(_ kind: ReportKind) { state.withLock { $0.told.rows[kind] = false } }

  /// An upload begins: realtime reports stored from now on ask for another one.
  func willUpload() { state.withLock { ($0.told.realtime, $0.told.crash) = (false, false) } }

  /// Rows were stored since `willClaim`.
  func hasRows(_ kind: ReportKind) -> Bool { state.withLock { $0.told.rows[kind] } }
}

extension WishBox.State {
  mutating func tell(_ wish: WritableKeyPath<WishBox.Wishes, Bool>) {
    guard !told[keyPath: wish] else { return }
    told[keyPath: wish] = true
    fresh[keyPath: wish] = true
  }
}
