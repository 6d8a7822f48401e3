import PrismRecovery
import PrismSQLite

/// A damaged database of the store's: its whole records, and what was noted beside it.
final class SalvageSource {
  let database: DamagedDatabase
  /// nil if there is no such file, or if it is damaged too.
  let contents: TableOfContents?

  /// nil if the file can't be opened.
  init?(path: String) {
    contents = TableOfContents(path: path + TableOfContents.suffix)
    let required: Set = ["facts", "namespaces", "ledger"]
    guard let database = DamagedDatabase(path: path, required: required, roots: contents?.roots) else { return nil }
    self.database = database
  }

  /// Above the number of every namespace that has a table.
  var namespaceEnd: Int {
    1 + (database.tables.compactMap { QueueID(table: $0)?.namespace }.max() ?? 0)
  }

  /// Delivered rows that are still in its tables, as far as its ledger can be read.
  var spent: [QueueID: IDRuns] {
    var spent: [QueueID: IDRuns] = [:]
    database.forEach(LedgerRecord.self, of: "ledger") { ledger in
      for run in ledger.segments.spent { spent[ledger.queue, default: IDRuns()].append(run) }
    }
    return spent
  }

  /// The rows of its packets in flight, as far as those can be read.
  var claimed: [QueueID: IDRuns] {
    var claimed: [QueueID: [IDRuns]] = [:]
    database.forEach(PacketRecord.self, of: "packets") { claimed[$0.queue, default: []].append($0.members) }
    return claimed.mapValues { IDRuns(union: $0) }
  }
}

extension DamagedDatabase {
  /// Calls `body` with each record of a table that is what was written.
  func forEach<Record: CheckedRecord, Failure>(
    _ record: Record.Type, of table: String, _ body: (Record) throws(Failure) -> Void
  ) throws(Failure) {
    try forEachRecord(of: table) { (found) throws(Failure) in
      if let record = Record(found.row(of: Record.Column.self)) { try body(record) }
    }
  }
}

extension SalvagedRecord {
  /// Calls `body` with the stored row that this is. - Returns: nil if it is not a row, or not what was stored.
  func withWholeRow<Result>(
    hasPayload: Bool, _ body: (StoredRow) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result? {
    let row = row(of: StoredRow.Column.self)
    guard columnCount == StoredRow.Column.allCases.count - (hasPayload ? 0 : 1), let type = row.integer(.type),
      let created = row.integer(.createdTime), let context = row.integer(.context), let flags = row.integer(.flags),
      let size = row.integer(.size), let checksum = row.integer(.checksum)
    else { return nil }
    return try row.withBytes(.reportID) { (reportID) throws(SQLiteError) in
      try row.withBytes(.body) { (text) throws(SQLiteError) in
        try row.withBytes(.payload) { (payload) throws(SQLiteError) in
          guard let text, reportID != nil || row.isNull(.reportID), (payload != nil) == hasPayload else { return nil }
          let stored = StoredRow(
            id: id, type: type, createdTime: created, context: context, flags: RowFlags(rawValue: flags), size: size,
            reportID: reportID, body: text, payload: payload)
          return stored.checksum == checksum ? try body(stored) : nil
        }
      }
    }
  }
}
