import PrismProtocol
import PrismSQLite

/// A row of `down_records`: a record as the server has it.
struct DownRecordRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case content, id
    case localID = "local_id"
    case version, time, fields, checksum
  }

  let content: Int64
  let id: RecordID
  let localID: RecordID?
  /// The number of the operation, or of the whole table, that it came with.
  let version: Int64
  /// Milliseconds since 1970.
  let time: Int64
  /// A JSON object.
  let fields: [UInt8]

  init(content: Int64, id: RecordID, localID: RecordID?, version: Int64, time: Int64, fields: [UInt8]) {
    (self.content, self.id, self.localID, self.version) = (content, id, localID, version)
    (self.time, self.fields) = (time, fields)
  }

  init(_ record: DownRecord, content: Int64, version: Int64) {
    self.init(
      content: content, id: record.id, localID: record.localID, version: version, time: record.time,
      fields: record.fields)
  }

  init?(_ row: some SQLiteValues<Column>) {
    guard let content = row.integer(.content), let id = row.string(.id).flatMap({ RecordID($0) }),
      let version = row.integer(.version), let time = row.integer(.time), let fields = row.data(.fields)
    else { return nil }
    self.init(
      content: content, id: id, localID: row.string(.localID).flatMap { RecordID($0) }, version: version, time: time,
      fields: fields)
    guard row.integer(.checksum) == checksum else { return nil }
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .content: content, .id: id.text, .localID: localID?.text, .version: version, .time: time, .fields: fields,
      .checksum: checksum,
    ])
  }

  /// Of every column before it.
  var checksum: Int64 {
    var sum = RecordChecksum(content, version, time)
    sum.add(id.text)
    sum.add(localID?.text ?? "")
    sum.add(fields)
    return sum.value
  }

  var record: DownRecord { DownRecord(id: id, localID: localID, fields: fields, time: time) }

  var value: StoredRecord {
    StoredRecord(
      id: id, serverID: id, fields: fields, version: version, changedTime: time, state: .clean, refusal: nil)
  }
}
