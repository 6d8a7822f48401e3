public import PrismProtocol
public import PrismStore

/// The content of the store, read on its queue.
public struct StoreFigures: Sendable {
  /// The queue of each namespace and kind.
  public var queues: [NamespaceName: [RowKind: QueueStatus]]
  /// The tables of records of each namespace.
  public var records: [NamespaceName: [RecordTableStatus]] = [:]
  /// Reports that got fields of records since the start, and those whose record is not there.
  public var enriched: [NamespaceName: Int] = [:], notEnriched: [NamespaceName: Int] = [:]
  /// The counts of the triggers of each namespace.
  public var triggers: [NamespaceName: [String: TriggerState]] = [:]
  /// Of the database and its log.
  public var bytes: Int
}

extension Engine {
  /// Figures that are known in memory, and one row a priority; nothing is counted. It hangs where the store's queue does.
  public nonisolated func storeFigures() async throws(StoreError) -> StoreFigures {
    let (queues, reading) = (try await parts.store.status(), await parts.store.records)
    let records = queues.keys.reduce(into: [:]) { $0[$1] = reading.tables(of: $1) }
    let enrichments = await parts.store.enrichments
    return StoreFigures(
      queues: queues, records: records, enriched: enrichments.added, notEnriched: enrichments.missing,
      triggers: await parts.store.triggers, bytes: await parts.store.storeBytes())
  }

  /// Why no reports are taken at present; nil: they are. Never waits.
  public nonisolated var obstacle: String? {
    let health = storeHealth
    guard !health.takesReports else { return nil }
    return "reports are refused, the store is \(health.state.rawValue)" + (health.cause.map { ": \($0)" } ?? "")
  }
}
