import CDeflate
import PrismSQLite

/// A record that tells whether a row is what was written.
protocol CheckedRecord: SQLiteRecord {
  /// nil if a value can't be, or if the row is not what was written.
  init?(_ row: some SQLiteValues<Column>)
}

extension SQLiteValues {
  /// nil: no number, or one that can't be a count: more can't be added up.
  func count(_ column: Column) -> Int? {
    integer(column).flatMap { (0...1 << 48).contains($0) ? Int($0) : nil }
  }
}

extension CheckedRecord {
  /// - Throws: `invalidContent` if the row is not what was written.
  init(whole row: SQLiteRow<Column>) throws(SQLiteError) {
    guard let record = Self(row) else { throw .invalidContent }
    self = record
  }
}

extension SQLiteStatement {
  /// Every row. - Throws: `invalidContent` if one is not what was written.
  func records<Record: CheckedRecord>(of record: Record.Type) throws(SQLiteError) -> [Record] {
    try values(of: Record.Column.self) { (row) throws(SQLiteError) in try Record(whole: row) }
  }

  /// The first row; nil if there is no row. - Throws: `invalidContent` if it is not what was written.
  func record<Record: CheckedRecord>(of record: Record.Type) throws(SQLiteError) -> Record? {
    try first(of: Record.Column.self) { (row) throws(SQLiteError) in try Record(whole: row) }
  }
}

extension SQLiteConnection {
  /// - Parameter place: what follows FROM.
  func records<Record: CheckedRecord>(of record: Record.Type, from place: String) throws(SQLiteError) -> [Record] {
    try prepare("SELECT \(Record.Column.list) FROM \(place)").records(of: record)
  }
}

/// The crc32 of a record's values in their order. Every record that decides what is sent, or where a report is counted,
/// carries one: SQLite itself notices about 4 % of flipped bits.
struct RecordChecksum {
  private var crc: UInt32 = 0

  init(_ numbers: Int64...) { add(numbers) }

  mutating func add(_ numbers: [Int64]) { numbers.withUnsafeBytes { add($0) } }

  /// Adds the count, then the bytes.
  mutating func add(_ bytes: [UInt8]) {
    add([Int64(bytes.count)])
    bytes.withUnsafeBytes { add($0) }
  }

  mutating func add(_ text: String) { add(Array(text.utf8)) }

  private mutating func add(_ bytes: UnsafeRawBufferPointer) {
    // A nil pointer would begin the checksum again.
    if bytes.count > 0 { crc = libdeflate_crc32(crc, bytes.baseAddress, bytes.count) }
  }

  var value: Int64 { Int64(crc) }
}
