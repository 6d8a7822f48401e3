import PrismSQLite

/// A row of `notes`: a small value that is kept for a namespace.
struct NoteRecord: CheckedRecord {
  enum Column: String, SQLiteColumn { case namespace, key, value }

  var namespace = 0
  var key = ""
  var value: [UInt8] = []

  mutating func pass(_ row: inout RowFields<Column>) {
    row(.namespace, &namespace)
    row(.key, &key)
    row(.value, &value)
  }
}

extension SQLiteConnection {
  /// Those that can be read. - Parameter condition: what follows WHERE.
  func notes(_ condition: String = "true") throws(SQLiteError) -> [NoteRecord] {
    let select = try prepare("SELECT \(NoteRecord.Column.list) FROM notes WHERE \(condition)")
    return try select.values(of: NoteRecord.Column.self) { NoteRecord($0) }
  }
}

/// A row of `namespaces` or `types`: the name behind a number in rows.
struct NameRecord: CheckedRecord {
  enum Table: String {
    case namespaces, types
  }

  /// In the order of both tables.
  enum Column: String, SQLiteColumn { case number, name, checksum }

  /// So that a record that comes into the wrong table is seen.
  var table = ""
  var number: Int64 = 0
  var name = ""

  mutating func pass(_ row: inout RowFields<Column>) {
    row(.number, &number)
    row.add(table)
    row(.name, &name)
    row.check(.checksum, isNewer: true)
  }
}

extension NameRecord {
  init(_ table: Table, number: Int64, name: String) { self.init(table: table.rawValue, number: number, name: name) }

  /// nil if it is not what was written.
  init?(_ row: some SQLiteValues<Column>, in table: Table) {
    self.init(table: table.rawValue)
    guard read(row) else { return nil }
  }
}
