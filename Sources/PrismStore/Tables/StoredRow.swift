import CDeflate
import PrismSQLite

/// One row of a queue's table, read in place: valid until its statement steps on.
struct StoredRow: SQLiteRecord {
  /// In the order of the tables; tables of metas have no payload.
  enum Column: String, SQLiteColumn {
    case id, type, createdTime, context, flags, size, checksum, reportID, body, payload
  }

  var id: Int64
  var type: Int64
  var createdTime: Int64
  /// The id of its context; 0 or less if it has no context, see `RowOwner`.
  var context: Int64
  var flags: RowFlags
  /// Bytes of meta and payload.
  var size: Int64
  /// nil: made from the row's id.
  var reportID: UnsafeRawBufferPointer?
  var body: UnsafeRawBufferPointer
  var payload: UnsafeRawBufferPointer?

  /// The crc32 of everything that the row says, the lengths included. SQLite itself notices about 4 % of flipped bits.
  var checksum: Int64 {
    var crc: UInt32 = 0
    func add(_ bytes: UnsafeRawBufferPointer) {
      guard bytes.count > 0 else { return }  // a nil pointer would begin the checksum again
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
  init(_ row: SQLiteRow<Column>, hasPayload: Bool) {
    (id, type, createdTime) = (row.int64(.id), row.int64(.type), row.int64(.createdTime))
    (context, flags, size) = (row.int64(.context), RowFlags(rawValue: row.int64(.flags)), row.int64(.size))
    let given = row.blob(.reportID)
    reportID = given.isEmpty ? nil : given
    body = row.blob(.body)
    payload = hasPayload ? row.blob(.payload) : nil
  }

  /// Whether the row says what it said when it was stored.
  /// - Parameter row: what `stored` was read from.
  static func isWhole(_ stored: StoredRow, _ row: SQLiteRow<Column>) -> Bool {
    stored.checksum == row.int64(.checksum)
  }

  /// Copies nothing: what the row points to must stay where it is until the statement was run.
  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind(.id, id)
    bindBesideID(to: insert)
  }

  /// Binds as `bind(to:)` does, and leaves the id to SQLite.
  func bindBehindLast(to insert: SQLiteInsert<Column>) {
    insert.bindNull(.id)
    bindBesideID(to: insert)
  }

  private func bindBesideID(to insert: SQLiteInsert<Column>) {
    insert.bind(.type, type)
    insert.bind(.createdTime, createdTime)
    insert.bind(.context, context)
    insert.bind(.flags, flags.rawValue)
    insert.bind(.size, size)
    insert.bind(.checksum, checksum)
    if let reportID { insert.bind(.reportID, uncopiedText: reportID) } else { insert.bindNull(.reportID) }
    insert.bind(.body, uncopiedBlob: body)
    if let payload { insert.bind(.payload, uncopiedBlob: payload) }
  }
}

/// The columns of a row without its body.
struct RowHead {
  enum Column: String, SQLiteColumn { case id, size, createdTime, flags, context }

  let id: Int64
  let size: Int
  let createdTime: Int64
  let context: Int64

  init(_ row: SQLiteRow<Column>) {
    (id, size, createdTime, context) = (
      row.int64(.id), row.int(.size), row.int64(.createdTime), row.int64(.context)
    )
  }
}
