import PrismProtocol
import PrismSQLite

/// Carries out the operations of a device's packet.
///
/// An operation that meets a change of the server's holds if its device knew that one, or if it is later by its time. Else
/// the server's change gets a new number, so that the device learns it, even if it decided otherwise.
struct SQLiteRecordUpload {
  private let table: SQLiteRecordTable
  private let deletions: SQLiteRecordDeletions
  private let log: SQLiteRecordLog
  private let stream: StreamID
  private let receivedTime: Int64
  /// The server has changed records of the namespace.
  private let hasLog: Bool
  /// The newest number that a device can know.
  private let newest: Int64
  private let upsert: SQLiteStatement, delete: SQLiteStatement, renew: SQLiteStatement

  private enum GivenColumn: String, SQLiteColumn {
    case number = "server_id"
    case isNamed = "is_named"
    case id
  }

  private static let key = "namespace = :namespace AND tab = :tab AND device = :device AND id = :id"

  init(_ connection: SQLiteConnection, of stream: StreamID, receivedTime: Int64) throws(SQLiteError) {
    (self.stream, self.receivedTime) = (stream, receivedTime)
    let statements = SQLiteStatements(connection)
    table = SQLiteRecordTable(connection: connection, statements: statements)
    deletions = SQLiteRecordDeletions(statements)
    log = SQLiteRecordLog(statements, stream.namespace)
    let sequence = try log.sequence()
    (hasLog, newest) = (sequence != nil, sequence ?? 0)
    upsert = try connection.prepare(
      """
      INSERT INTO records (server_id, namespace, tab, device, id, fields, version, changed_time, received_time, is_named)
      VALUES (:server_id, :namespace, :tab, :device, :id, :fields, :version, :changed_time, :received_time, :is_named)
      ON CONFLICT (namespace, tab, device, id) DO UPDATE SET fields = excluded.fields, version = excluded.version,
        changed_time = excluded.changed_time, received_time = excluded.received_time, seq = 0, insert_seq = 0
        WHERE seq <= :known OR excluded.changed_time > changed_time
      RETURNING \(GivenColumn.list)
      """)
    delete = try connection.prepare(
      "DELETE FROM records WHERE \(Self.key) AND (seq <= :known OR changed_time < :changed_time)")
    renew = try connection.prepare(
      """
      UPDATE records SET seq = :seq, insert_seq = CASE WHEN :is_gone THEN :seq ELSE insert_seq END WHERE \(Self.key)
      """)
  }

  func carryOut(_ operation: RecordOperation, _ applied: inout RecordApplied) throws(SQLiteError) {
    let place = RecordPlace(namespace: stream.namespace, table: operation.table, device: stream.device)
    guard operation.kind != .delete else { return try delete(operation, place, &applied) }
    let deletion = hasLog ? try deletions.find(operation.key, in: place) : nil
    if let deletion, known(operation) < deletion.sequence, operation.changedTime <= deletion.changedTime {
      try deletions.renew(operation.key, in: place, sequence: try log.next(for: place))
      applied.lost += 1
      return note(operation, deletion.isNamed ? operation.key : String(deletion.number), &applied)
    }
    if deletion != nil { try deletions.remove(operation.key, in: place) }
    if let given = try write(operation, deletion) { return note(operation, given, &applied) }
    guard let known = try table.find(operation.key, in: place) else { return }
    try renew(operation, place, isGone: false)
    applied.lost += 1
    note(operation, known.serverID, &applied)
  }

  private func note(_ operation: RecordOperation, _ given: String, _ applied: inout RecordApplied) {
    applied.receipt.ids[operation.table, default: [:]][operation.id] = RecordID(given)
  }

  /// - Parameter deletion: that it takes back: the record has its id again.
  /// - Returns: the server's id; nil: the server's change holds.
  private func write(_ operation: RecordOperation, _ deletion: RecordDeletion?) throws(SQLiteError) -> String? {
    bind(upsert, operation)
    upsert.bind(":server_id", deletion?.number)
    upsert.bind(":is_named", deletion?.isNamed ?? false)
    upsert.bind(":fields", operation.fields?.text ?? "{}")
    upsert.bind(":version", operation.version)
    upsert.bind(":changed_time", operation.changedTime)
    upsert.bind(":received_time", receivedTime)
    upsert.bind(":known", known(operation))
    return try upsert.first(of: GivenColumn.self) { $0.bool(.isNamed) ? $0.text(.id) : String($0.int64(.number)) }
  }

  private func delete(
    _ operation: RecordOperation, _ place: RecordPlace, _ applied: inout RecordApplied
  ) throws(SQLiteError) {
    bind(delete, operation)
    delete.bind(":changed_time", operation.changedTime)
    delete.bind(":known", known(operation))
    try delete.run()
    guard table.connection.changes == 0, hasLog, try table.find(operation.key, in: place) != nil else { return }
    try renew(operation, place, isGone: true)
    applied.lost += 1
  }

  /// The device gets the server's change, once more if it had it.
  private func renew(_ operation: RecordOperation, _ place: RecordPlace, isGone: Bool) throws(SQLiteError) {
    bind(renew, operation)
    renew.bind(":seq", try log.next(for: place))
    renew.bind(":is_gone", isGone)
    try renew.run()
  }

  /// A number that was never given says nothing.
  private func known(_ operation: RecordOperation) -> Int64 {
    let after = operation.after ?? 0
    return 0...newest ~= after ? after : 0
  }

  private func bind(_ statement: SQLiteStatement, _ operation: RecordOperation) {
    statement.bind(":namespace", stream.namespace.text)
    statement.bind(":tab", operation.table.text)
    statement.bind(":device", stream.device)
    statement.bind(":id", operation.key)
  }
}
