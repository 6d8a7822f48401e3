import PrismProtocol
import PrismSQLite

/// Deliveries that are not in the database yet. A kill loses them: then `trace` knows nothing of these packets.
struct UnwrittenDeliveries {
  /// Each would write a page of its own: with a trickle of reports a fifth of all that is written.
  static let countMax = 8
  static let millisecondsMax: Int64 = 60_000

  fileprivate(set) var records: [DeliveryRecord] = []
  /// The packet up to which the old ones are forgotten; empty: the walk begins when `nextWalk` has come.
  private var walked: [UInt8] = []
  private var nextWalk = Int64.min

  /// - Returns: nil while no walk is due.
  fileprivate func placeOfWalk(_ now: Int64) -> [UInt8]? { walked.isEmpty && now < nextWalk ? nil : walked }

  fileprivate mutating func walked(to place: [UInt8]?, _ now: Int64) {
    walked = place ?? []
    if place == nil { nextWalk = now + 3_600_000 }
  }

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
