extension SQLiteRecord {
  /// Calls `body` with the stored row that this is. nil: it is none, or not what was stored.
  func withWholeRow<Result>(
    hasPayload: Bool, _ body: (StoredRow) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result? {
    guard columnCount == (hasPayload ? 10 : 9), let type = int(1), let created = int(2), let context = int(3),
      let flags = int(4), let size = int(5), let checksum = int(6), isNull(7) || data(7) != nil, data(8) != nil,
      !hasPayload || data(9) != nil
    else { return nil }
    return try withBytes(7) { (reportID) throws(SQLiteError) in
      try withBytes(8) { (text) throws(SQLiteError) in
        try withBytes(9) { (payload) throws(SQLiteError) in
          guard let text else { return nil }
          let row = StoredRow(
            id: id, type: type, createdTime: created, context: context, flags: RowFlags(rawValue: flags), size: size,
            reportID: reportID, body: text, payload: payload)
          return row.checksum == checksum ? try body(row) : nil
        }
      }
    }
  }
}
