public import PrismProtocol
public import PrismStore

/// The content of the store, read on its queue.
public struct StoreFigures: Sendable {
  /// The queue of each namespace and kind.
  public var queues: [NamespaceName: [RowKind: QueueStatus]]
  /// Of the database and its log.
  public var bytes: Int
}

extension Engine {
  /// Figures that are known in memory, and one row a priority; nothing is counted. It hangs where the store's queue does.
  public nonisolated func storeFigures() async throws(StoreError) -> StoreFigures {
    StoreFigures(queues: try await parts.store.status(), bytes: await parts.store.storeBytes())
  }

  /// Why no reports are taken at present; nil: they are. Never waits.
  public nonisolated var obstacle: String? {
    let health = storeHealth
    guard !health.takesReports else { return nil }
    return "reports are refused, the store is \(health.state.rawValue)" + (health.cause.map { ": \($0)" } ?? "")
  }
}
