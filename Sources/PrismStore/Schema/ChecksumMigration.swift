import PrismProtocol
import PrismSQLite

/// Gives the records of a version 1 database the checksums that version 2 has.
struct ChecksumMigration {
  private let connection: SQLiteConnection
  init(_ connection: SQLiteConnection) { self.connection = connection }

  func run() throws(SQLiteError) {
    if let epoch = try connection.fact(Epoch.key) { try Epoch.write(epoch, connection) }
    try addToNames(.namespaces)
    try addToNames(.types)
    try addToLedgers()
    try addToPackets()
    try addToDeadLetters()
  }

  private func addToNames(_ table: NameRecord.Table) throws(SQLiteError) {
    var names: [NameRecord] = []
    let select = try connection.prepare("SELECT \(NameRecord.Column.list) FROM \(table.rawValue)")
    try select.forEachRow(of: NameRecord.Column.self) { row in
      if let name = NameRecord(unchecked: row, in: table) { names.append(name) }
    }
    let update = try connection.prepare("UPDATE \(table.rawValue) SET checksum = :checksum WHERE number = :number")
    for name in names {
      try update.run([":checksum": name.checksum, ":number": name.number])
    }
  }

  private func addToLedgers() throws(SQLiteError) {
    var ledgers: [LedgerRecord] = []
    let select = try connection.prepare("SELECT \(LedgerRecord.Column.list(before: .segments)) FROM ledger")
    try select.forEachRow(of: LedgerRecord.Column.self) { row in
      if let ledger = LedgerRecord(unchecked: row) { ledgers.append(ledger) }
    }
    let update = try connection.prepare(
      "UPDATE ledger SET checksum = :checksum WHERE namespace = :namespace AND kind = :kind")
    for ledger in ledgers {
      try update.run([
        ":checksum": ledger.checksum, ":namespace": ledger.queue.namespace, ":kind": ledger.queue.kind.number,
      ])
    }
  }

  private func addToPackets() throws(SQLiteError) {
    var packets: [PacketRecord] = []
    let select = try connection.prepare("SELECT \(PacketRecord.Column.list) FROM packets")
    try select.forEachRow(of: PacketRecord.Column.self) { row in
      if let packet = PacketRecord(unchecked: row) { packets.append(packet) }
    }
    let update = try connection.prepare("UPDATE packets SET checksum = :checksum WHERE id = :id")
    for packet in packets {
      try update.run([":checksum": packet.checksum, ":id": packet.id.bytes])
    }
  }

  /// `user`, which the records have too, came with version 3.
  private func addToDeadLetters() throws(SQLiteError) {
    var checksums: [(number: Int64, checksum: Int64)] = []
    let select = try connection.prepare("SELECT \(DeadLetterRecord.Column.list(before: .user)) FROM dead")
    try select.forEachRow(of: DeadLetterRecord.Column.self) { row in
      let checksum = DeadLetterRecord.checksum(
        row: row.int64(.row), type: row.int64(.type), createdTime: row.int64(.createdTime),
        flags: RowFlags(rawValue: row.int64(.flags)), size: row.int64(.size), reportID: row.bytes(.reportID),
        body: row.bytes(.body), payload: row.data(.payload), owner: .unknown)
      checksums.append((row.int64(.number), checksum))
    }
    let update = try connection.prepare("UPDATE dead SET checksum = :checksum WHERE number = :number")
    for (number, checksum) in checksums {
      try update.run([":checksum": checksum, ":number": number])
    }
  }
}
