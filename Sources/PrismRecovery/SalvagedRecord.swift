public import PrismSQLite

/// A record as SQLite writes it (https://www.sqlite.org/fileformat.html#record_format), found in a file that may be
/// damaged. Nothing of it is believed: a column that it doesn't have, or that holds another kind of value, reads as nil.
public struct SalvagedRecord {
  /// The integer key of the table, if it has one; else 0.
  public let id: Int64
  private let bytes: [UInt8]
  private var columns: [(kind: Int, range: Range<Int>)] = []

  /// nil if these bytes are not a record.
  init?(id: Int64, _ bytes: [UInt8]) {
    (self.id, self.bytes) = (id, bytes)
    guard let header = BTreePage.variableInt(bytes, 0), (1...Int64(max(1, bytes.count))).contains(header.value) else {
      return nil
    }
    var (at, content) = (header.end, Int(header.value))
    while at < Int(header.value) {
      guard let kind = BTreePage.variableInt(bytes, at), let length = Self.length(kind.value),
        content + length <= bytes.count
      else { return nil }
      columns.append((Int(kind.value), content..<content + length))
      (at, content) = (kind.end, content + length)
    }
  }

  private static func length(_ kind: Int64) -> Int? {
    switch kind {
    case 0, 8, 9: 0
    case 1...4: Int(kind)
    case 5: 6
    case 6, 7: 8
    case 12...Int64(DamagedDatabase.recordBytesMax) * 2: Int(kind - 12) / 2
    default: nil
    }
  }

  /// Columns that were added to the table later are missing.
  public var columnCount: Int { columns.count }

  /// Reads it by the names of a table's columns.
  public func row<Column>(of columns: Column.Type) -> SalvagedRow<Column> { SalvagedRow(self) }

  // MARK: By the place of the column

  func isNull(_ column: Int) -> Bool { column < columns.count && columns[column].kind == 0 }

  func int(_ column: Int) -> Int64? {
    guard column < columns.count else { return nil }
    let (kind, range) = columns[column]
    switch kind {
    case 8: return 0
    case 9: return 1
    case 1...6:
      let value = bytes[range].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      let unused = 64 - range.count * 8
      return Int64(bitPattern: value << UInt64(unused)) >> Int64(unused)
    default: return nil
    }
  }

  /// The bytes of a text or a blob.
  func data(_ column: Int) -> ArraySlice<UInt8>? {
    guard column < columns.count, columns[column].kind >= 12 else { return nil }
    return bytes[columns[column].range]
  }

  func text(_ column: Int) -> String? { data(column).flatMap { String(validating: $0, as: UTF8.self) } }

  func withBytes<Result, Failure>(
    _ column: Int, _ body: (UnsafeRawBufferPointer?) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    guard column < columns.count, columns[column].kind >= 12 else { return try body(nil) }
    let range = columns[column].range
    return try bytes.withUnsafeBufferPointer { (all) throws(Failure) in
      try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(all)[range]))
    }
  }
}

/// A record, read by the names of its table's columns.
public struct SalvagedRow<Column: SQLiteColumn>: SQLiteValues {
  private let record: SalvagedRecord

  init(_ record: SalvagedRecord) { self.record = record }

  /// SQLite writes NULL for the integer key, which is the first column; the key itself is beside the record.
  public func integer(_ column: Column) -> Int64? {
    let place = Int(column.index)
    return place == 0 && record.isNull(0) ? record.id : record.int(place)
  }

  /// The bytes of a text or a blob; nil: another kind of value.
  public func data(_ column: Column) -> [UInt8]? { record.data(Int(column.index)).map { [UInt8]($0) } }
  /// false: the record was written before the table had this column.
  public func has(_ column: Column) -> Bool { column.index < record.columnCount }
  /// false also if the record doesn't have the column.
  public func isNull(_ column: Column) -> Bool { record.isNull(Int(column.index)) }

  /// Calls `body` with the bytes of a text or a blob, in place; nil: the column holds another kind of value.
  public func withBytes<Result, Failure>(
    _ column: Column, _ body: (UnsafeRawBufferPointer?) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try record.withBytes(Int(column.index), body)
  }
}
