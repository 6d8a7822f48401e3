import PrismProtocol
import PrismSQLite

/// A row of `down_tables`: how far a table is in step with the server, and which content programs read.
struct DownTableRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case tab, content, sequence, shape, rows, heldTime, keptLocal, keptRemote, checksum
  }

  /// The number in `record_tables`.
  var table = 0
  /// The rows of `down_records` that programs read; 0: there are no such rows yet, or the table is `both`.
  var content: Int64 = 0
  /// The number after which the next question asks; nil: all records are asked for.
  var sequence: Int64?
  /// Of the declaration: what was fetched for another one is fetched again.
  var shape: Int64 = 0
  /// Rows of `content`.
  var rows = 0
  /// When the server last said that this is all; milliseconds since 1970.
  var heldTime: Int64 = 0 { didSet { writtenTime = heldTime } }
  /// The one that is in the database: without a change a newer one is written once an hour at most.
  private(set) var writtenTime: Int64 = 0
  /// Conflicts that the change made here, or the server's, came out of.
  var keptLocal = 0
  var keptRemote = 0

  /// Notes the time in memory only.
  mutating func hold(at unixMilliseconds: Int64) {
    let written = writtenTime
    heldTime = unixMilliseconds
    writtenTime = written
  }

  mutating func pass(_ row: inout RowFields<Column>) {
    row(.tab, &table)
    row(.content, &content)
    row(.sequence, &sequence, absent: .integer(-1))
    row(.shape, &shape)
    row.count(.rows, &rows)
    row(.heldTime, &heldTime)
    row(.keptLocal, &keptLocal)
    row(.keptRemote, &keptRemote)
    row.check(.checksum)
  }

  /// Of the keys that decide which records the server sends, and how they are kept here.
  static func shape(of table: RecordTable) -> Int64 {
    var sum = RecordChecksum()
    sum.add(table.direction.rawValue)
    sum.add(table.scope.rawValue)
    for (field, target) in table.references.sorted(by: { $0.key < $1.key }) {
      sum.add(field)
      sum.add(target.text)
    }
    // Nothing for a table without one: it is not fetched again after an update of the daemon.
    for field in table.index.sorted() {
      sum.add("index")
      sum.add(field)
    }
    return sum.value
  }
}

/// A row of `down_records`: a record as the server has it.
struct DownRecordRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn { case content, id, localID, version, time, fields, checksum }

  var content: Int64 = 0
  var id = RecordID.unread
  var localID: RecordID?
  /// The number of the operation, or of the whole table, that it came with.
  var version: Int64 = 0
  /// Milliseconds since 1970.
  var time: Int64 = 0
  /// A JSON object.
  var fields: [UInt8] = []

  mutating func pass(_ row: inout RowFields<Column>) {
    row(.content, &content)
    row(.version, &version)
    row(.time, &time)
    row(.id, &id)
    row(.localID, &localID, absent: .text([]))
    row(.fields, &fields)
    row.check(.checksum)
  }

  var record: DownRecord { DownRecord(id: id, localID: localID, fields: fields, time: time) }
  var value: StoredRecord {
    StoredRecord(
      id: id, serverID: id, fields: fields, version: version, changedTime: time, state: .clean, refusal: nil)
  }
}

extension DownRecordRow {
  init(_ record: DownRecord, content: Int64, version: Int64) {
    self.init(
      content: content, id: record.id, localID: record.localID, version: version, time: record.time,
      fields: record.fields)
  }
}
