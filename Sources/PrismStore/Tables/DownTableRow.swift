import PrismProtocol
import PrismSQLite

/// A row of `down_tables`: how far a table is in step with the server, and which content programs read.
struct DownTableRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case tab, content, sequence, shape, rows
    case heldTime = "held_time"
    case keptLocal = "kept_local"
    case keptRemote = "kept_remote"
    case checksum
  }

  /// The number in `record_tables`.
  let table: Int
  /// The rows of `down_records` that programs read; 0: there are no such rows yet, or the table is `both`.
  var content: Int64 = 0
  /// The number after which the next question asks; nil: all records are asked for.
  var sequence: Int64?
  /// Of the declaration: what was fetched for another one is fetched again.
  var shape: Int64
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

  init(table: Int, shape: Int64) { (self.table, self.shape) = (table, shape) }

  init?(_ row: some SQLiteValues<Column>) {
    guard let table = row.integer(.tab), let content = row.integer(.content), let shape = row.integer(.shape),
      let rows = row.integer(.rows), rows >= 0, let heldTime = row.integer(.heldTime),
      let keptLocal = row.integer(.keptLocal), let keptRemote = row.integer(.keptRemote)
    else { return nil }
    self.init(table: Int(table), shape: shape)
    (self.content, self.rows, self.heldTime) = (content, Int(rows), heldTime)
    (sequence, self.keptLocal, self.keptRemote) = (row.integer(.sequence), Int(keptLocal), Int(keptRemote))
    writtenTime = heldTime
    guard row.integer(.checksum) == checksum else { return nil }
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .tab: table, .content: content, .sequence: sequence, .shape: shape, .rows: rows, .heldTime: heldTime,
      .keptLocal: keptLocal, .keptRemote: keptRemote, .checksum: checksum,
    ])
  }

  /// Of every column before it.
  var checksum: Int64 {
    RecordChecksum(
      Int64(table), content, sequence ?? -1, shape, Int64(rows), heldTime, Int64(keptLocal), Int64(keptRemote)
    ).value
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
