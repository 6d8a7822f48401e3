import CDeflate
import PrismProtocol
import PrismSQLite

/// A row of a table as a value that lists its fields once: for reading, for writing and for the checksum.
protocol CheckedRecord: SQLiteRecord {
  /// Before a row is read.
  init()
  /// Passes each field with its column. Those of the checksum come in its order, and those behind it are not part of it.
  mutating func pass(_ row: inout RowFields<Column>)
  /// Whether the values can be together.
  var isPossible: Bool { get }
}

extension CheckedRecord {
  var isPossible: Bool { true }

  /// nil if a value can't be, or if the row is not what was written.
  init?(_ row: some SQLiteValues<Column>) {
    self.init()
    guard read(row) else { return nil }
  }

  /// - Returns: false if a value can't be, or if the row is not what was written.
  mutating func read(_ row: some SQLiteValues<Column>) -> Bool {
    var fields = RowFields(row, nil)
    pass(&fields)
    return fields.isWhole && isPossible
  }

  func bind(to insert: SQLiteInsert<Column>) {
    var (record, fields) = (self, RowFields(nil, insert))
    record.pass(&fields)
  }

  /// Of the fields before it.
  var checksum: Int64 {
    var (record, fields) = (self, RowFields<Column>(nil, nil))
    record.pass(&fields)
    return fields.checksum
  }

  /// - Throws: `invalidContent` if the row is not what was written.
  init(whole row: SQLiteRow<Column>) throws(SQLiteError) {
    guard let record = Self(row) else { throw .invalidContent }
    self = record
  }
}

/// The fields of a record on their way from a row, or to one.
struct RowFields<Column: SQLiteColumn> {
  private let source: (any SQLiteValues<Column>)?
  private let insert: SQLiteInsert<Column>?
  private var sum = RecordChecksum()
  /// Of the fields before the column of the checksum.
  private(set) var checksum: Int64 = 0
  /// false: a value can't be, or the checksum is another one.
  var isWhole = true

  init(_ source: (any SQLiteValues<Column>)?, _ insert: SQLiteInsert<Column>?) {
    (self.source, self.insert) = (source, insert)
  }

  /// The fields come from a row.
  var isReading: Bool { source != nil }

  /// - Parameter absent: what counts in the checksum in place of nil; nothing by default.
  mutating func callAsFunction<Value: ColumnValue>(
    _ column: Column, _ value: inout Value, absent: SQLValue = .null, isSummed: Bool = true
  ) {
    if let source {
      let stored = source.integer(column).map { .integer($0) } ?? source.data(column).map { .blob($0) } ?? SQLValue.null
      guard let found = Value(column: stored) else {
        isWhole = false
        return
      }
      value = found
    }
    let stored = value.columnValue
    insert?.bind(column, stored)
    guard isSummed else { return }
    switch stored == .null ? absent : stored {
    case .integer(let number): sum.add([number])
    case .text(let bytes), .blob(let bytes): sum.add(bytes)
    case .null, .real: break
    }
  }

  /// A number of rows: more of them can't be added up.
  /// - Parameter isNewer: 0 in a row without the column.
  mutating func count(_ column: Column, _ value: inout Int, isNewer: Bool = false, isSummed: Bool = true) {
    var found = Int?.some(value)
    self(column, &found, isSummed: isSummed)
    value = found ?? (isNewer ? 0 : -1)
    if !(0...1 << 48).contains(value) { isWhole = false }
  }

  mutating func queue(_ namespace: Column, _ kind: Column, _ queue: inout QueueID, isSummed: Bool = true) {
    var numbers = (namespace: queue.namespace, kind: queue.kind.number)
    self(namespace, &numbers.namespace, isSummed: isSummed)
    self(kind, &numbers.kind, isSummed: isSummed)
    guard isReading else { return }
    guard isWhole, let found = QueueID(Int64(numbers.namespace), Int64(numbers.kind)) else {
      isWhole = false
      return
    }
    queue = found
  }

  /// Adds numbers to the checksum that are in it in a form of their own.
  mutating func add(_ numbers: [Int64]) { sum.add(numbers) }
  mutating func add(_ text: String) { sum.add(text) }
  mutating func add(uncounted bytes: [UInt8]) { sum.add(uncounted: bytes) }

  /// - Returns: whether the checksum is that of the fields so far; nil: the row has no checksum.
  mutating func compare(_ column: Column) -> Bool? {
    checksum = sum.value
    insert?.bind(column, .integer(checksum))
    guard let source else { return true }
    return source.integer(column).map { $0 == checksum }
  }

  /// - Parameter isNewer: rows of version 1 of the database don't have it.
  mutating func check(_ column: Column, isNewer: Bool = false) {
    let isEqual = compare(column) ?? (isNewer && source?.has(column) == false)
    isWhole = isWhole && isEqual
  }
}

extension SQLiteColumn {
  /// Accounts of a ledger with their columns, which have their names.
  static func accounts(_ accounts: [Ledger.Account]) -> [(account: Ledger.Account, column: Self)] {
    accounts.map { ($0, Self(rawValue: $0.rawValue)!) }
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

  mutating func add(_ numbers: [Int64]) { numbers.withUnsafeBytes { add($0) } }

  /// Adds the count, then the bytes.
  mutating func add(_ bytes: [UInt8]) {
    add([Int64(bytes.count)])
    add(uncounted: bytes)
  }

  mutating func add(uncounted bytes: [UInt8]) { bytes.withUnsafeBytes { add($0) } }

  mutating func add(_ text: String) { add(Array(text.utf8)) }

  private mutating func add(_ bytes: UnsafeRawBufferPointer) {
    // A nil pointer would begin the checksum again.
    if bytes.count > 0 { crc = libdeflate_crc32(crc, bytes.baseAddress, bytes.count) }
  }

  var value: Int64 { Int64(crc) }
}
