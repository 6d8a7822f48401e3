/// Gives the records of a version 1 database the checksums that version 2 has.
struct SumsMigration {
  private let connection: SQLiteConnection
  init(_ connection: SQLiteConnection) { self.connection = connection }

  func run() throws(SQLiteError) {
    if let epoch = try connection.fact(Epoch.key) { try Epoch.write(epoch, connection) }
    try sumNames("namespaces")
    try sumNames("types")
    try sumLedgers()
    try sumPackets()
    try sumLetters()
  }

  private func sumNames(_ table: String) throws(SQLiteError) {
    let update = try connection.prepare("UPDATE \(table) SET checksum = ? WHERE number = ?")
    for (number, name) in try names(table) {
      update.bind(1, RowSum.ofName(name, number: number, in: table))
      update.bind(2, number)
      try update.run()
    }
  }

  private func names(_ table: String) throws(SQLiteError) -> [(Int64, String)] {
    var result: [(Int64, String)] = []
    try connection.prepare("SELECT number, name FROM \(table)").forEachRow { result.append(($0.int64(0), $0.text(1))) }
    return result
  }

  private func sumLedgers() throws(SQLiteError) {
    var sums: [(QueueID, Int64)] = []
    try connection.prepare("SELECT * FROM ledger").forEachRow { row in
      let queue = QueueID(namespace: row.int(0), kind: QueueID.kind(numbered: row.int(1)))
      let numbers = (2..<17).map { row.int64($0) }
      sums.append((queue, RowSum.ofLedger(queue, numbers, lastAccepted: row.isNull(17) ? nil : row.bytes(17))))
    }
    let update = try connection.prepare("UPDATE ledger SET checksum = ? WHERE namespace = ? AND kind = ?")
    for (queue, sum) in sums {
      update.bind(1, sum)
      update.bind(2, queue.namespace)
      update.bind(3, QueueID.number(of: queue.kind))
      try update.run()
    }
  }

  private func sumPackets() throws(SQLiteError) {
    var sums: [([UInt8], Int64)] = []
    let select = try connection.prepare(
      "SELECT namespace, kind, id, created_time, has_client_ids, header, members FROM packets")
    try select.forEachRow { row in
      let sum = RowSum.ofPacket(
        row.bytes(2), QueueID(namespace: row.int(0), kind: QueueID.kind(numbered: row.int(1))),
        createdTime: row.int64(3), hasClientIDs: row.int(4) != 0, header: row.text(5), members: row.text(6))
      sums.append((row.bytes(2), sum))
    }
    let update = try connection.prepare("UPDATE packets SET checksum = ? WHERE id = ?")
    for (id, sum) in sums {
      update.bind(1, sum)
      update.bind(2, id)
      try update.run()
    }
  }

  private func sumLetters() throws(SQLiteError) {
    var sums: [(Int64, Int64)] = []
    let select = try connection.prepare(
      "SELECT number, row, type, created_time, flags, size, report_id, body, payload FROM dead")
    try select.forEachRow { row in
      let sum = DeadLetterRecord.sum(
        row: row.int64(1), type: row.int64(2), createdTime: row.int64(3), flags: row.int64(4), size: row.int64(5),
        reportID: row.bytes(6), body: row.bytes(7), payload: row.isNull(8) ? nil : row.bytes(8),
        owner: .unknown)
      sums.append((row.int64(0), sum))
    }
    let update = try connection.prepare("UPDATE dead SET checksum = ? WHERE number = ?")
    for (number, sum) in sums {
      update.bind(1, sum)
      update.bind(2, number)
      try update.run()
    }
  }
}
