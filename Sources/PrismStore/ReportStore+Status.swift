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
            oldestCreatedTime: try oldestHeld(queue, database))
        }
      }
      return result
    }
  }

  /// The same while the database can't be read, too: then as of the last commit, and without the oldest row's time.
  public func lastKnownStatus() -> [NamespaceName: [ReportKind: QueueStatus]] {
    if let status = try? status() { return status }
    var result: [NamespaceName: [ReportKind: QueueStatus]] = [:]
    for (number, namespace) in state.namespaces {
      for kind in ReportKind.allCases {
        let queue = state[QueueID(namespace: number, kind: kind)]
        result[namespace, default: [:]][kind] = QueueStatus(
          ledger: queue.ledger, bytes: queue.bytes, oldestCreatedTime: nil)
      }
    }
    return result
  }

  public func namespaces() -> [NamespaceName] { state.namespaces.values.sorted() }

  /// Of the database and its log.
  public func storeBytes() -> Int {
    ["", "-wal"].reduce(0) { sum, suffix in
      var facts = stat()
      return stat(options.databasePath + suffix, &facts) == 0 ? sum + Int(facts.st_size) : sum
    }
  }

  /// Of the first row of each priority, in flight or not.
  private func oldestHeld(_ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) -> Int64? {
    guard state[queue].ledger[.waiting] + state[queue].ledger[.claimed] > 0 else { return nil }
    var oldest: Int64?
    for lane in Lane.allCases {
      let rows = try database.statement(.walkSizes(queue))
      defer { rows.reset() }
      rows.bind(1, LaneValues.bases[lane])
      rows.bind(2, lane.idEnd)
      if try rows.step() { oldest = min(oldest ?? .max, rows.int64(2)) }
    }
    return oldest
  }

  /// Calls `body` with id, size, created_time, flags and context of each waiting row of a lane in order, until it answers false.
  func walkWaiting(
    _ lane: Lane, _ queue: QueueID, _ database: StoreDatabase, _ body: (SQLiteStatement) -> Bool
  ) throws(SQLiteError) {
    var rows = try WaitingRows(lane, queue, after: LaneValues.bases[lane], state[queue], database)
    defer { rows.reset() }
    while let row = try rows.next(), body(row) {}
  }
}
