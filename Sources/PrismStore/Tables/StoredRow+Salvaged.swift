import PrismSQLite
import PrismSalvage

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
