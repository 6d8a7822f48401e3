import Glibc
import PrismProtocol

// What is in the store, for `prismctl status`.
extension ReportStore {
  /// Of every namespace that ever stored something.
  public func status() throws(StoreError) -> [NamespaceName: [ReportKind: QueueStatus]] {
    try reading { (database) throws(SQLiteError) in
      var result: [NamespaceName: [ReportKind: QueueStatus]] = [:]
      for (number, namespace) in state.namespaces {
        for kind in ReportKind.allCases {
          let queue = QueueID(namespace: number, kind: kind)
          result[namespace, default: [:]][kind] = QueueStatus(
            ledger: state[queue].ledger, bytes: state[queue].bytes,
            oldestCreatedTime: try oldestWaiting(queue, database))
        }
      }
      return result
    }
  }

  public func namespaces() -> [NamespaceName] { state.namespaces.values.sorted() }

  /// Of the database and its log.
  public func storeBytes() -> Int {
    ["", "-wal"].reduce(0) { sum, suffix in
      var facts = stat()
      return stat(options.databasePath + suffix, &facts) == 0 ? sum + Int(facts.st_size) : sum
    }
  }

  private func oldestWaiting(_ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) -> Int64? {
    guard state[queue].ledger[.waiting] > 0 else { return nil }
    var oldest: Int64?
    for lane in Lane.allCases {
      try walkWaiting(lane, queue, database) { row in
        oldest = min(oldest ?? .max, row.int64(2))
        return false
      }
    }
    return oldest
  }

  /// Calls `body` with id, size, created_time and flags of each waiting row of a lane in order, until it answers false.
  func walkWaiting(
    _ lane: Lane, _ queue: QueueID, _ database: StoreDatabase, _ body: (SQLiteStatement) -> Bool
  ) throws(SQLiteError) {
    let rows = try database.statement(.walkSizes(queue))
    defer { rows.reset() }
    let before = state[queue]  // looked up for every row, it would be copied for every row
    var after = LaneValues.bases[lane]
    var last = after
    while true {
      rows.reset()
      rows.bind(1, after)
      rows.bind(2, lane.idEnd)
      var jump: Int64?
      while jump == nil, try rows.step() {
        // A damaged tree may lead back, for ever.
        let id = rows.int64(0)
        guard id > last else { throw .nonsense }
        last = id
        if let run = before.claimedRun(of: id) {
          jump = run.last
        } else if !body(rows) {
          return
        }
      }
      guard let jump else { return }
      after = jump
    }
  }
}
