import PrismProtocol
import PrismSQLite

/// Steps through the waiting rows of one priority in their order, and skips those of packets in flight.
struct WaitingRows {
  private let rows: SQLiteStatement
  private let queue: QueueState
  private let end: Int64
  private var isBound = false
  /// Every row at or below it was passed.
  private(set) var passed: Int64

  /// - Parameter after: the row behind which it begins; nil: at the first one.
  init(_ priority: Priority, _ queue: QueueID, after: Int64? = nil, _ transaction: StoreTransaction) throws(SQLiteError)
  {
    rows = try transaction.statement(.rows(.walkHeads, queue))
    (self.queue, end) = (transaction.state[queue], priority.idEnd)
    passed = after ?? PriorityValues.bases[priority]
  }

  /// - Returns: nil if there are no more.
  mutating func next() throws(SQLiteError) -> RowHead? {
    while true {
      if !isBound {
        rows.reset()
        rows.bind(":after", passed)
        rows.bind(":end", end)
        isBound = true
      }
      guard let row = try rows.next(of: RowHead.Column.self) else { return nil }
      let head = RowHead(row)
      // A damaged tree may lead back, for ever.
      guard head.id > passed else { throw .invalidContent }
      passed = head.id
      guard let run = queue.claimedRun(of: head.id) else { return head }
      (passed, isBound) = (run.last, false)
    }
  }

  func reset() { rows.reset() }
}
