import PrismPacket
import PrismProtocol
import PrismSQLite

/// The server's changes that a device has to learn, within one transaction.
struct SQLiteRecordNews {
  private let connection: SQLiteConnection

  init(_ connection: SQLiteConnection) { self.connection = connection }

  func news(to question: DownQuestion) throws(SQLiteError) -> RecordNews {
    let log = SQLiteRecordLog(connection, question.namespace)
    var place = RecordPlace(namespace: question.namespace, table: question.table, device: nil)
    var known = try log.table(place)
    if known == nil {
      place.device = question.deviceID
      known = try log.table(place)
    }
    let newest = try log.newest()
    guard let after = question.after, after <= newest, after >= max(known?.floor ?? 0, try log.base()) else {
      return .all(place, sequence: known?.sequence ?? newest)
    }
    guard let known, known.sequence > after else { return .operations([], sequence: newest) }
    let operations = try operations(of: place, after: after)
    guard operations.count <= RecordLog.operationsMax else { return .all(place, sequence: known.sequence) }
    return .operations(operations, sequence: newest)
  }

  private enum Column: String, SQLiteColumn {
    case number = "server_id"
    case isNamed = "is_named"
    case id, fields
    case changedTime = "changed_time"
    case seq
    case insertSeq = "insert_seq"
  }

  /// One more than an answer may have, if there are more.
  private func operations(of place: RecordPlace, after: Int64) throws(SQLiteError) -> [DownOperation] {
    let scope = "namespace = :namespace AND tab = :tab AND device = :device AND seq > :after"
    let select = try connection.prepare(
      """
      SELECT \(Column.list) FROM (
        SELECT server_id, is_named, id, fields, changed_time, seq, insert_seq FROM records WHERE \(scope) AND seq > 0
        UNION ALL
        SELECT server_id, is_named, id, NULL, changed_time, seq, 0 FROM deleted_records WHERE \(scope))
      ORDER BY seq LIMIT \(RecordLog.operationsMax + 1)
      """)
    select.bind(":namespace", place.namespace.text)
    select.bind(":tab", place.table.text)
    select.bind(":device", place.owner)
    select.bind(":after", after)
    var operations: [DownOperation] = []
    try select.forEachRow(of: Column.self) { row in
      let (id, isNamed) = (RecordID(row.text(.id)), row.bool(.isNamed))
      guard let id, let serverID = isNamed ? id : RecordID(String(row.int64(.number))) else { return }
      let fields = row.data(.fields)
      let kind: RecordOperation.Kind = fields == nil ? .delete : row.int64(.insertSeq) > after ? .insert : .update
      operations.append(
        DownOperation(
          sequence: row.int64(.seq), op: String(row.int64(.seq)), table: place.table, id: serverID,
          localID: isNamed ? nil : id, kind: kind, fields: fields ?? [], time: row.int64(.changedTime)))
    }
    return operations
  }

  /// Reads all records in the transaction that is open. - Parameter take: its error ends the reading.
  func readAll(of place: RecordPlace, _ take: (DownLine) throws -> Void) throws {
    let log = SQLiteRecordLog(connection, place.namespace)
    let known = try log.table(place)
    let sequence = if let known { known.sequence } else { try log.newest() }
    let scope = "namespace = :namespace AND tab = :tab AND device = :device"
    let count = try connection.prepare("SELECT count(*) FROM records WHERE \(scope)")
    bind(count, place)
    let rows = Int(try count.firstInt() ?? 0)
    try take(
      .head(
        DownHead(
          isFull: true, sequence: sequence, count: rows, store: try SQLiteRecordLog.store(in: connection),
          isUnheard: known == nil && rows == 0)))
    let select = try connection.prepare("SELECT \(Column.list) FROM records WHERE \(scope) ORDER BY id")
    bind(select, place)
    defer { select.reset() }
    while let row = try select.next(of: Column.self) {
      let (id, isNamed) = (RecordID(row.text(.id)), row.bool(.isNamed))
      guard let id, let serverID = isNamed ? id : RecordID(String(row.int64(.number))) else {
        throw SQLiteError.corrupt("a record has a damaged id")
      }
      try take(
        .record(
          DownRecord(
            id: serverID, localID: isNamed ? nil : id, fields: row.bytes(.fields), time: row.int64(.changedTime))))
    }
  }

  private func bind(_ statement: SQLiteStatement, _ place: RecordPlace) {
    statement.bind(":namespace", place.namespace.text)
    statement.bind(":tab", place.table.text)
    statement.bind(":device", place.owner)
  }
}
