import PrismProtocol
import PrismSQLite

/// Deliveries that are not in the database yet. A kill loses them: then `trace` knows nothing of these packets.
struct UnwrittenDeliveries {
  /// Each would write a page of its own: with a trickle of reports a fifth of all that is written.
  static let countMax = 8
  static let millisecondsMax: Int64 = 60_000

  fileprivate(set) var records: [DeliveryRecord] = []

  func isDue(heldTime: Int64) -> Bool {
    records.first.map { $0.heldTime < heldTime - Self.millisecondsMax } ?? false
  }
}

/// Which packets were delivered within the last 24 h.
struct Deliveries {
  static let keptMilliseconds: Int64 = 86_400_000

  private let transaction: StoreTransaction
  init(_ transaction: StoreTransaction) { self.transaction = transaction }

  func add(_ record: DeliveryRecord, isWrittenAtOnce: Bool) throws(SQLiteError) {
    transaction.memory.deliveries.records.append(record)
    let count = transaction.memory.deliveries.records.count
    if isWrittenAtOnce || count >= UnwrittenDeliveries.countMax { try write() }
  }

  func write() throws(SQLiteError) {
    let insert = try transaction.statement(.packets(.insertDelivery))
    for record in transaction.memory.deliveries.records { try insert.run(inserting: record) }
    transaction.memory.deliveries.records = []
  }

  /// - Parameter cutoff: by the held clock.
  func forget(before cutoff: Int64) throws(SQLiteError) {
    var old: [[UInt8]] = []
    let find = try transaction.statement(.packets(.oldDeliveries))
    find.bind(":cutoff", cutoff)
    try find.forEachRow(of: DeliveryRecord.Column.self) { row in
      if DeliveryRecord(row).map({ isNeeded($0) }) != true { old.append(row.bytes(.id)) }
    }
    for id in old {
      let delete = try transaction.statement(.packets(.deleteDelivery))
      delete.bind(":id", id)
      try delete.run()
    }
  }

  /// While its rows are in their table, a delivery is known twice, on two pages.
  private func isNeeded(_ record: DeliveryRecord) -> Bool {
    guard transaction.names.namespaces[record.queue.namespace] != nil else { return false }
    return transaction.state[record.queue].segments.list.contains { $0.spent.overlaps(record.members) }
  }
}
