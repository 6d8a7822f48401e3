import PrismProtocol
import PrismSQLite

/// Steps through the waiting rows of one priority in their order, and skips those of packets in flight.
struct WaitingRows {
  private var walk: RowWalk<RowHead.Column>
  /// Every row at or below it was passed.
  var passed: Int64 { walk.passed }

  /// - Parameter after: the row behind which it begins; nil: at the first one.
  init(_ priority: Priority, _ queue: QueueID, after: Int64? = nil, _ transaction: StoreTransaction) {
    walk = RowWalk(.walkHeads, id: .id, priority, queue, after: after, skipsClaimed: true, transaction)
  }

  /// - Returns: nil if there are no more.
  mutating func next() throws(SQLiteError) -> RowHead? { try walk.next().map { RowHead($0) } }

  mutating func reset() { walk.reset() }
}
