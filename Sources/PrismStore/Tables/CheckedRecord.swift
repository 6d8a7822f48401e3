import PrismSQLite

/// A record that tells whether a row is what was written.
protocol CheckedRecord: SQLiteRecord {
  /// nil if it is not what was written.
  init?(_ row: some SQLiteValues<Column>)
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
