import CZlib

/// One row as it stands in its table, read in place: valid until its statement steps on.
struct StoredRow {
  var id: Int64
  var type: Int64
  var createdTime: Int64
  /// 0: none.
  var context: Int64
  var flags: RowFlags
  var size: Int64
  /// nil: made from the row's id.
  var reportID: UnsafeRawBufferPointer?
  var body: UnsafeRawBufferPointer
  var payload: UnsafeRawBufferPointer?

  /// crc32 of everything that the row says, the lengths included. SQLite itself notices about 4 % of flipped bits.
  var checksum: Int64 {
    var crc: UInt = 0
    func add(_ bytes: UnsafeRawBufferPointer) {
      guard bytes.count > 0 else { return }  // a nil pointer would begin the sum anew
      crc = crc32_z(crc, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    }
    let numbers: [8 of Int64] = [
      id, type, createdTime, context, flags.rawValue, size, Int64(reportID?.count ?? -1), Int64(body.count),
    ]
    withUnsafeBytes(of: numbers) { add($0) }
    if let reportID { add(reportID) }
    add(body)
    if let payload { add(payload) }
    return Int64(crc)
  }
}

extension StoredRow {
  /// Reads the columns of `QueueID.columns`.
  init(_ statement: SQLiteStatement, hasPayload: Bool) {
    (id, type, createdTime) = (statement.int64(0), statement.int64(1), statement.int64(2))
    (context, flags, size) = (statement.int64(3), RowFlags(rawValue: statement.int64(4)), statement.int64(5))
    reportID = statement.isNull(7) ? nil : statement.blob(7)
    body = statement.blob(8)
    payload = hasPayload ? statement.blob(9) : nil
  }

  /// Whether the row says what it said when it was stored.
  static func isWhole(_ row: StoredRow, _ statement: SQLiteStatement) -> Bool {
    row.checksum == statement.int64(6)
  }

  /// Binds the values for `INSERT INTO … (QueueID.columns) VALUES (?, …)`; nothing is copied.
  func bind(to statement: SQLiteStatement) {
    statement.bind(1, id)
    statement.bind(2, type)
    statement.bind(3, createdTime)
    statement.bind(4, context)
    statement.bind(5, flags.rawValue)
    statement.bind(6, size)
    statement.bind(7, checksum)
    if let reportID { statement.bind(8, uncopiedText: reportID) } else { statement.bindNull(8) }
    statement.bind(9, uncopiedBlob: body)
    if let payload { statement.bind(10, uncopiedBlob: payload) }
  }
}
