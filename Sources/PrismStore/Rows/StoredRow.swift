import CDeflate
import PrismProtocol

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
    var crc: UInt32 = 0
    func add(_ bytes: UnsafeRawBufferPointer) {
      guard bytes.count > 0 else { return }  // a nil pointer would begin the sum anew
      crc = libdeflate_crc32(crc, bytes.baseAddress, bytes.count)
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
    let given = statement.blob(7)
    reportID = given.isEmpty ? nil : given
    body = statement.blob(8)
    payload = hasPayload ? statement.blob(9) : nil
  }

  /// Whether the row says what it said when it was stored.
  static func isWhole(_ row: StoredRow, _ statement: SQLiteStatement) -> Bool {
    row.checksum == statement.int64(6)
  }

  /// Binds the values for `INSERT INTO … (QueueID.columns) VALUES (?, …), (?, …)…`; nothing is copied.
  /// - Parameter position: of the row among those that the statement inserts.
  func bind(to statement: SQLiteStatement, position: Int = 0) {
    let base = Int32(position * (payload == nil ? 9 : 10))
    statement.bind(base + 1, id)
    statement.bind(base + 2, type)
    statement.bind(base + 3, createdTime)
    statement.bind(base + 4, context)
    statement.bind(base + 5, flags.rawValue)
    statement.bind(base + 6, size)
    statement.bind(base + 7, checksum)
    if let reportID { statement.bind(base + 8, uncopiedText: reportID) } else { statement.bindNull(base + 8) }
    statement.bind(base + 9, uncopiedBlob: body)
    if let payload { statement.bind(base + 10, uncopiedBlob: payload) }
  }
}
