import PrismProtocol

/// Steps through the waiting rows of one priority in their order; those of packets in flight are passed over.
struct WaitingRows {
  private let rows: SQLiteStatement
  private let queue: QueueState
  private let end: Int64
  private var isBound = false
  /// Every row at or below it was passed.
  private(set) var passed: Int64

  /// - Parameter after: the row to begin behind.
  init(
    _ lane: Lane, _ queue: QueueID, after: Int64, _ state: QueueState, _ database: StoreDatabase
  ) throws(SQLiteError) {
    rows = try database.statement(.walkSizes(queue))
    (self.queue, end, passed) = (state, lane.idEnd, after)
  }

  /// - Returns: the statement at the next row: its id, size, created_time, flags, context. nil: there are no more.
  mutating func next() throws(SQLiteError) -> SQLiteStatement? {
    while true {
      if !isBound {
        rows.reset()
        rows.bind(1, passed)
        rows.bind(2, end)
        isBound = true
      }
      guard try rows.step() else { return nil }
      let id = rows.int64(0)
      // A damaged tree may lead back, for ever.
      guard id > passed else { throw .nonsense }
      passed = id
      guard let run = queue.claimedRun(of: id) else { return rows }
      (passed, isBound) = (run.last, false)
    }
  }

  func reset() { rows.reset() }
}
