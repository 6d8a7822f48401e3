import PrismProtocol
import PrismSQLite

/// The table `deleted_records`: deletions of the server's that devices have to learn.
struct SQLiteRecordDeletions {
  private enum Column: String, SQLiteColumn {
    case number = "server_id"
    case isNamed = "is_named"
    case changedTime = "changed_time"
    case seq
  }

  private static let key = "namespace = :namespace AND tab = :tab AND device = :device AND id = :id"

  private let statements: SQLiteStatements

  init(_ statements: SQLiteStatements) { self.statements = statements }

  func find(_ id: String, in place: RecordPlace) throws(SQLiteError) -> RecordDeletion? {
    let select = try statements.prepare("SELECT \(Column.list) FROM deleted_records WHERE \(Self.key)")
    bind(select, id, place)
    return try select.first(of: Column.self) { row in
      RecordDeletion(
        number: row.int64(.number), isNamed: row.bool(.isNamed), changedTime: row.int64(.changedTime),
        sequence: row.int64(.seq))
    }
  }

  func add(_ deletion: RecordDeletion, _ id: String, in place: RecordPlace) throws(SQLiteError) {
    let insert = try statements.prepare(
      """
      REPLACE INTO deleted_records (namespace, tab, device, id, server_id, is_named, changed_time, seq)
      VALUES (:namespace, :tab, :device, :id, :server_id, :is_named, :changed_time, :seq)
      """)
    bind(insert, id, place)
    insert.bind(":server_id", deletion.number)
    insert.bind(":is_named", deletion.isNamed)
    insert.bind(":changed_time", deletion.changedTime)
    insert.bind(":seq", deletion.sequence)
    try insert.run()
  }

  func renew(_ id: String, in place: RecordPlace, sequence: Int64) throws(SQLiteError) {
    let update = try statements.prepare("UPDATE deleted_records SET seq = :seq WHERE \(Self.key)")
    bind(update, id, place)
    update.bind(":seq", sequence)
    try update.run()
  }

  func remove(_ id: String, in place: RecordPlace) throws(SQLiteError) {
    let delete = try statements.prepare("DELETE FROM deleted_records WHERE \(Self.key)")
    bind(delete, id, place)
    try delete.run()
  }

  private func bind(_ statement: SQLiteStatement, _ id: String, _ place: RecordPlace) {
    statement.bind(":namespace", place.namespace.text)
    statement.bind(":tab", place.table.text)
    statement.bind(":device", place.owner)
    statement.bind(":id", id)
  }
}
