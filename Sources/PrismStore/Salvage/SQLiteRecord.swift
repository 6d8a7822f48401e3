/// A row as SQLite writes it (https://www.sqlite.org/fileformat.html#record_format). Columns that it doesn't have, or
/// that hold another kind of value, read as nil.
struct SQLiteRecord {
  /// The table's integer key, where it has one; 0 otherwise. Its column reads as NULL.
  let id: Int64
  private let bytes: [UInt8]
  private var columns: [(kind: Int, range: Range<Int>)] = []

  /// nil: these bytes are no record.
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

  var columnCount: Int { columns.count }

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

  /// A text's or a blob's bytes.
  func data(_ column: Int) -> ArraySlice<UInt8>? {
    guard column < columns.count, columns[column].kind >= 12 else { return nil }
    return bytes[columns[column].range]
  }

  func text(_ column: Int) -> String? { data(column).flatMap { String(validating: $0, as: UTF8.self) } }

  func withBytes<Result>(
    _ column: Int, _ body: (UnsafeRawBufferPointer?) throws(SQLiteError) -> Result
  ) throws(SQLiteError) -> Result {
    guard column < columns.count, columns[column].kind >= 12 else { return try body(nil) }
    let range = columns[column].range
    return try bytes.withUnsafeBufferPointer { (all) throws(SQLiteError) in
      try body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(all)[range]))
    }
  }
}
