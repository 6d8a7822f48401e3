import PrismBase
import PrismProtocol
import PrismSQLite

/// Removes reports on an operator's order. Rows of packets in flight stay: they may be at the collector already.
struct Removal: PlainOperations {
  private static let daysMax = 1_000_000

  let transaction: StoreTransaction

  private typealias Chosen = (id: Int64, size: Int)

  /// Removes the selected reports, in slices of a transaction each. - Returns: how many reports, with their payloads.
  static func remove(
    _ selection: RemovalSelection, of namespace: NamespaceName, in file: DatabaseFile
  ) throws(StoreError) -> Int {
    guard let number = file.memory.state.names.number(of: namespace) else { return 0 }
    let now = file.options.time.uptime
    var removed = 0
    while true {
      let rest = selection.rest(after: removed)
      let count = try file.write { (transaction) throws(SQLiteError) in
        try Removal(transaction).removeSlice(rest, number, now: now)
      }
      removed += count
      if count < Retention.sliceRowsMax { return removed }
    }
  }

  /// Removes one slice. - Parameter now: the uptime when the order came.
  /// - Returns: how many reports were removed, with their payloads; less than a slice: there are no more.
  private func removeSlice(_ selection: RemovalSelection, _ namespace: Int, now: Duration) throws(SQLiteError) -> Int {
    let (metas, payloads) = (
      QueueID(namespace: namespace, kind: .meta), QueueID(namespace: namespace, kind: .payload)
    )
    let chosen = try choose(selection, metas, now)
    let carried = try waiting(chosen, in: payloads)
    try drop(chosen, metas)
    // A payload goes with its report; alone only if its meta has left already.
    try drop(carried, payloads)
    let alone = chosen.isEmpty ? try choose(selection, payloads, now) : []
    try drop(alone, payloads)
    return chosen.count + alone.count
  }

  private func drop(_ rows: [Chosen], _ queue: QueueID) throws(SQLiteError) {
    var homes: [QueueID: [Chosen]] = [:]
    for row in rows { homes[try MemoryRing(transaction).home(of: row.id, queue), default: []].append(row) }
    for (home, rows) in homes { try transaction.drop(rows, home, to: .removed) }
  }

  /// Up to a slice of waiting rows.
  private func choose(_ selection: RemovalSelection, _ queue: QueueID, _ now: Duration) throws(SQLiteError) -> [Chosen]
  {
    let sliceMax = Retention.sliceRowsMax
    switch selection {
    case .report(let id):
      let rows = try Trace(transaction).candidates(id).filter { $0.namespace == queue.namespace }
      return try waiting(rows.map { ($0.row, 0) }, in: queue)
    case .all: return try choose(queue, limit: sliceMax)
    case .oldest(let count): return try choose(queue, limit: min(count, sliceMax))
    case .latest(let count): return try choose(queue, order: "DESC", limit: min(count, sliceMax))
    case .olderThan(let days):
      // An operator may type any number: after three thousand years it makes no difference.
      let end = transaction.memory.held.end(heldFor: min(max(days, 0), Self.daysMax), now)
      return try choose(queue, condition: "\(Self.sequence) < \(end)", limit: sliceMax)
    }
  }

  /// Below the priority's bits.
  private static let sequence = "(id & \(Int64(1) << RowID.sequenceBits - 1))"

  /// In the order of arrival over all priorities.
  private func choose(
    _ queue: QueueID, condition: String = "1", order: String = "ASC", limit: Int
  ) throws(SQLiteError) -> [Chosen] {
    let queues = state.queues(of: queue.namespace).filter { $0.kind == queue.kind }
    let tables = queues.flatMap { state[$0].segments.tables($0) }.map { table in
      "SELECT \(RowHead.Column.list) FROM \(table.name) WHERE \(condition)"
    }
    let rows = try transaction.prepare(
      """
      SELECT \(RowHead.Column.list) FROM (\(tables.joined(separator: " UNION ALL ")))
      ORDER BY \(Self.sequence) \(order)
      """)
    var chosen: [Chosen] = []
    defer { rows.reset() }
    while chosen.count < limit, let row = try rows.next(of: RowHead.Column.self) {
      if state[queue].leftRun(of: row.int64(.id)) == nil { chosen.append((row.int64(.id), row.int(.size))) }
    }
    return chosen
  }

  /// Those of `rows` that wait in a queue.
  private func waiting(_ rows: [Chosen], in queue: QueueID) throws(SQLiteError) -> [Chosen] {
    var result: [Chosen] = []
    for row in rows where state[queue].leftRun(of: row.id) == nil {
      let member = IDRuns(row.id)
      let size = try transaction.bytes(of: member, MemoryRing(transaction).home(of: row.id, queue))
      if size > 0 { result.append((row.id, size)) }
    }
    return result
  }
}

extension RemovalSelection {
  /// The selection that is left after `removed` reports were removed.
  fileprivate func rest(after removed: Int) -> RemovalSelection {
    switch self {
    case .oldest(let count): .oldest(count - removed)
    case .latest(let count): .latest(count - removed)
    case .all, .olderThan, .report: self
    }
  }
}
