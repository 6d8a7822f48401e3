import PrismSQLite

/// A row of `namespaces` or `types`: the name behind a number in rows.
struct NameRecord: SQLiteRecord {
  enum Table: String {
    case namespaces, types
  }

  /// In the order of both tables.
  enum Column: String, SQLiteColumn { case number, name, checksum }

  let table: Table
  let number: Int64
  let name: String

  init(_ table: Table, number: Int64, name: String) { (self.table, self.number, self.name) = (table, number, name) }

  /// nil if it is not what was written. Databases of version 1 have no checksum.
  init?(_ row: some SQLiteValues<Column>, in table: Table) {
    guard let number = row.integer(.number), let name = row.string(.name) else { return nil }
    self.init(table, number: number, name: name)
    guard !row.has(.checksum) || row.integer(.checksum) == checksum else { return nil }
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([.number: number, .name: name, .checksum: checksum])
  }

  var checksum: Int64 { Self.checksum(name, number: number, in: table.rawValue) }

  /// - Parameter table: so that a record that comes into the wrong table is seen.
  static func checksum(_ name: String, number: Int64, in table: String) -> Int64 {
    var sum = RecordChecksum(number)
    sum.add(table)
    sum.add(name)
    return sum.value
  }
}
