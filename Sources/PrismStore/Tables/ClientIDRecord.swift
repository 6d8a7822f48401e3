import PrismSQLite

/// A row of `client_ids`: a report id that a client gave (`ClientIDKey`), and the row that has it.
struct ClientIDRecord: CheckedRecord {
  /// In the order of the table.
  enum Column: String, SQLiteColumn {
    case namespace
    case reportID = "report_id"
    case row
    case deliveredTime = "delivered_time"
  }

  let namespace: Int64
  let key: String
  let row: Int64
  /// By the held clock; nil until the row was delivered.
  let deliveredTime: Int64?

  /// nil if a value can't be.
  init?(_ row: some SQLiteValues<Column>) {
    guard let namespace = row.integer(.namespace), let key = row.string(.reportID), let id = row.integer(.row) else {
      return nil
    }
    (self.namespace, self.key, self.row, deliveredTime) = (namespace, key, id, row.integer(.deliveredTime))
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([.namespace: namespace, .reportID: key, .row: row, .deliveredTime: deliveredTime])
  }
}
