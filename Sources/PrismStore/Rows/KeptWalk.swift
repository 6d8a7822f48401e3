import PrismProtocol
import PrismSQLite

/// Steps back through the kept metas of one ring, the newest first.
struct KeptWalk {
  private let queue: QueueID
  private let end: Int64
  private let takesAsked: Bool
  private let transaction: StoreTransaction
  /// Segments that were not looked at, the newest last.
  private var segments: [RowSegment]
  private var rows: SQLiteStatement?
  /// Valid until the next step; nil: there are no more.
  private(set) var row: (StoredRow, SQLiteRow<StoredRow.Column>)?
  var id: Int64 { row?.0.id ?? .min }

  /// - Parameter takesAsked: with rows for which the collector is asked.
  init(_ queue: QueueID, before end: Int64, takesAsked: Bool, _ transaction: StoreTransaction) {
    (self.queue, self.end, self.transaction) = (queue, end, transaction)
    let asks = takesAsked && transaction.state[queue].releases.contains { $0.devices > 0 }
    self.takesAsked = asks
    segments = transaction.state[queue].segments.list.filter { $0.kept.map { asks || $0.rows > 0 } ?? false }
  }

  mutating func step() throws(SQLiteError) {
    row = nil
    while rows != nil || !segments.isEmpty {
      if rows == nil, let segment = segments.popLast() {
        let table = RowTable(queue, number: segment.number)
        rows = try transaction.statement(.rows(.walkBack, table)).bind([":end": end])
      }
      guard let found = try rows?.next(of: StoredRow.Column.self) else {
        reset()
        continue
      }
      let stored = StoredRow(found, hasPayload: queue.kind.hasPayload)
      let isLeaving = transaction.state[queue].isLeaving(stored.id)
      if isLeaving, !(takesAsked && transaction.state[queue].isAsked(stored.id)) { continue }
      guard transaction.names.types[stored.type] != nil else { continue }
      row = (stored, found)
      return
    }
  }

  mutating func reset() {
    rows?.reset()
    rows = nil
  }
}
