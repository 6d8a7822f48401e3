import PrismProtocol

/// What became of a packet that was delivered: for `trace`, and so that a damaged file's old pages bring nothing back.
struct SettledPacket: Sendable {
  /// So many wait in memory for their page, which would be a fifth of what a trickle writes if each had its own commit.
  static let unwrittenMax = 8
  static let unwrittenMillisecondsMax: Int64 = 60_000

  let id: PacketID
  let queue: QueueID
  let receipt: Settlement.Receipt
  let members: IDRuns

  func write(_ database: StoreDatabase) throws(SQLiteError) {
    let insert = try database.statement(.insertSettled)
    insert.bind(1, id.bytes)
    insert.bind(2, queue.namespace)
    insert.bind(3, QueueID.number(of: queue.kind))
    insert.bind(4, receipt.unixMilliseconds)
    insert.bind(5, receipt.attempts)
    insert.bind(6, receipt.wasDuplicate ? 1 : 0)
    insert.bind(7, members.text)
    try insert.run()
  }
}

extension ReportStore {
  /// In a transaction. A kill loses what was not written: then `trace` knows nothing of these packets.
  func writeSettled(_ database: StoreDatabase) throws(SQLiteError) {
    for packet in unwrittenSettled { try packet.write(database) }
    unwrittenSettled = []
  }

  /// In a transaction of its own, where there is anything.
  func writeSettled() throws(StoreError) {
    guard !unwrittenSettled.isEmpty else { return }
    do { try transaction { (database) throws(SQLiteError) in try writeSettled(database) } } catch {
      throw error.storeError
    }
  }
}
