import PrismSQL
import PrismSQLite

// Records of a database that was set aside.
extension RecordTables {
  func adopt(_ row: SQLiteRow<Column>) throws {
    func text(_ column: Column) -> String { row.text(column) }
    try statements.insert(
      Column.self, into: "records",
      [
        row.int64(.number), text(.namespace), text(.tab), text(.device), text(.id), text(.fields), row.int64(.version),
        row.int64(.changedTime), row.int64(.receivedTime), row.int64(.isNamed), row.int64(.seq), row.int64(.insertSeq),
        nil as String?, 0,
      ], onConflict: "DO NOTHING")
  }

  /// Devices know ids of records that can't be read: no other record gets one of them. They know numbers of operations,
  /// too, of which some can't be read: every device gets all records once more.
  /// - Parameter now: milliseconds since 1970; more than any number that was given.
  static func skipIDs(now: Int64, in connection: SQLiteConnection) throws(SQLiteError) {
    try connection.execute(
      """
      UPDATE sqlite_sequence SET seq = seq + \(1 << 20) WHERE name = 'records';
      REPLACE INTO record_sequences VALUES ('', \(now));
      INSERT OR IGNORE INTO record_tables
        SELECT DISTINCT namespace, device, tab, \(now), 0, 0 FROM records WHERE seq > 0 OR device = '';
      INSERT OR IGNORE INTO record_sequences SELECT DISTINCT namespace, \(now) FROM records WHERE seq > 0 OR device = '';
      """)
  }
}
