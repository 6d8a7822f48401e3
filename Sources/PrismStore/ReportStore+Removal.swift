import PrismBase
import PrismProtocol

// Reports that an operator removes. Rows of packets in flight stay: they may be at the collector already.
extension ReportStore {
  /// - Returns: how many reports were removed (with their payloads), counted as `removed`.
  public func remove(_ selection: RemovalSelection, of namespace: NamespaceName) throws(StoreError) -> Int {
    guard let number = state.number(of: namespace) else { return 0 }
    let (metas, payloads) = (QueueID(namespace: number, kind: .meta), QueueID(namespace: number, kind: .payload))
    var removed = 0
    let cutoff = options.time.unixMilliseconds
    do {
      while true {
        let count = try transaction { (database) throws(SQLiteError) in
          let rest: RemovalSelection =
            switch selection {
            case .oldest(let count): .oldest(count - removed)
            case .latest(let count): .latest(count - removed)
            case .all, .olderThan, .report: selection
            }
          let chosen = try choose(rest, metas, cutoff, database)
          try drop(chosen, metas, database)
          // A payload goes with its report; alone only where its meta has left already.
          let withMetas = try present(chosen, in: payloads, database)
          try drop(withMetas, payloads, database)
          let alone = chosen.isEmpty ? try choose(rest, payloads, cutoff, database) : []
          try drop(alone, payloads, database)
          return chosen.count + alone.count
        }
        removed += count
        if count < Self.sliceRowsMax { return removed }
      }
    } catch {
      throw error.storeError
    }
  }

  private typealias Chosen = (id: Int64, size: Int)

  private func drop(_ rows: [Chosen], _ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) {
    var members = IDRuns()
    for row in rows.sorted(by: { $0.id < $1.id }) { try members.append(read: row.id) }
    try drop(members, bytes: rows.reduce(0) { $0 + $1.size }, queue, to: .removed, database)
  }

  /// Up to a slice of waiting rows.
  private func choose(
    _ selection: RemovalSelection, _ queue: QueueID, _ now: Int64, _ database: StoreDatabase
  ) throws(SQLiteError) -> [Chosen] {
    let (condition, order, limit): (String, String, Int)
    switch selection {
    case .report(let id):
      let rows = try rows(of: id, database).filter { $0.namespace == queue.namespace }
      return try present(rows.map { ($0.row, 0) }, in: queue, database)
    case .all: (condition, order, limit) = ("1", "ASC", Self.sliceRowsMax)
    case .oldest(let count): (condition, order, limit) = ("1", "ASC", min(count, Self.sliceRowsMax))
    case .latest(let count): (condition, order, limit) = ("1", "DESC", min(count, Self.sliceRowsMax))
    case .olderThan(let days):
      let cutoff = now - Self.milliseconds(days: days)
      (condition, order, limit) = ("created_time < \(cutoff)", "ASC", Self.sliceRowsMax)
    }
    // By the sequence, below the lane's bits: the order of arrival over all lanes.
    let rows = try database.connection.prepare(
      """
      SELECT id, size FROM \(queue.table) WHERE \(condition)
      ORDER BY id & \(Int64(1) << RowID.sequenceBits - 1) \(order)
      """)
    var chosen: [Chosen] = []
    defer { rows.reset() }
    while chosen.count < limit, try rows.step() {
      if state[queue].claimedRun(of: rows.int64(0)) == nil { chosen.append((rows.int64(0), rows.int(1))) }
    }
    return chosen
  }

  /// Of a number that anybody may have typed: beyond three thousand years it is all the same.
  private static func milliseconds(days: Int) -> Int64 { Int64(min(max(days, 0), 1_000_000)) * 86_400_000 }

  private func present(
    _ rows: [Chosen], in queue: QueueID, _ database: StoreDatabase
  ) throws(SQLiteError) -> [Chosen] {
    let size = try database.statement(.sizeOfRange(queue))
    var result: [Chosen] = []
    for row in rows where state[queue].claimedRun(of: row.id) == nil {
      size.bind(1, row.id)
      size.bind(2, row.id)
      try size.forEachRow { if $0.int(0) > 0 { result.append((row.id, $0.int(0))) } }
    }
    return result
  }

  // MARK: Export

  /// Rows of a namespace and kind as they would leave, by ascending id, those in flight among them.
  /// - Parameter after: the last id of the page before; 0 for the first.
  public func export(
    _ namespace: NamespaceName, _ kind: ReportKind, after: Int64, limit: Int
  ) throws(StoreError) -> [(id: Int64, meta: [UInt8], payload: [UInt8]?)] {
    guard let queue = state.queue(namespace, kind) else { return [] }
    return try reading { (database) throws(SQLiteError) in
      var page: [(id: Int64, meta: [UInt8], payload: [UInt8]?)] = []
      let rows = try database.statement(.walkRows(queue))
      rows.bind(1, after)
      rows.bind(2, Int64.max)
      defer { rows.reset() }
      while page.count < limit, try rows.step() {
        var reading = Reading(builder: .unlimited(metaBytesExpected: 0))
        _ = try take(rows, queue, into: &reading, database)
        // A damaged row is not shown as if it were a report; the next claim lays it aside.
        if reading.damaged.isEmpty {
          page.append((rows.int64(0), reading.builder.metas, reading.builder.payloads.first))
        }
      }
      return page
    }
  }
}
