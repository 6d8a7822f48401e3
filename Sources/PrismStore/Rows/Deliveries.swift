import PrismBase
import PrismProtocol
import PrismSQLite

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

  /// Forgets the old ones among the next thousand. All are looked at once an hour: an index would cost each packet a page.
  /// - Parameter now: by the held clock.
  func forget(now: Int64) throws(SQLiteError) {
    guard let after = transaction.memory.deliveries.placeOfWalk(now) else { return }
    var (old, last, count): ([[UInt8]], [UInt8], Int) = ([], [], 0)
    let find = try transaction.statement(.packets(.deliveriesAfter)).bind([":after": after])
    try find.forEachRow(of: DeliveryRecord.Column.self) { row in
      (last, count) = (row.bytes(.id), count + 1)
      if let record = DeliveryRecord(row), record.heldTime >= now - Self.keptMilliseconds || isNeeded(record) { return }
      old.append(last)
    }
    transaction.memory.deliveries.walked(to: count < 1000 ? nil : last, now)
    for id in old {
      try transaction.statement(.packets(.deleteDelivery)).run([":id": id])
    }
  }

  /// While its rows are in their table, a delivery is known twice, on two pages.
  private func isNeeded(_ record: DeliveryRecord) -> Bool {
    guard transaction.names.namespaces[record.queue.namespace] != nil else { return false }
    return transaction.state[record.queue].segments.list.contains { $0.spent.overlaps(record.members) }
  }
}

extension DatabaseFile {
  /// Writes the deliveries that are not written yet, and the held time with them.
  func writeDeliveries() throws(StoreError) {
    guard !memory.deliveries.records.isEmpty || memory.held.differs(options.time.uptime) else { return }
    try write { (transaction) throws(SQLiteError) in
      try Deliveries(transaction).write()
      try transaction.writeHeldTime()
    }
  }
}
