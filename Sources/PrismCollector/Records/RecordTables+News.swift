import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite

// The server's changes that a device has to learn, within one transaction of one snapshot.
extension RecordTables {
  /// Records that are read at a time.
  private static let readMax = 1000
  private static let scope = "namespace = $1 AND tab = $2 AND device = $3"

  private enum TableColumn: String, SQLiteColumn {
    case newest = "s.seq"
    case base = "b.seq"
    case device = "t.device"
    case sequence = "t.seq"
    case floor = "t.floor"
    case position = "t.fetched_seq"
  }

  /// - Returns: with the position that the device says, if it is another one than before.
  func news(to question: DownQuestion) throws -> (news: RecordNews, position: Int64?) {
    // The fleet's row sorts first.
    let found = try statements.first(
      of: TableColumn.self,
      """
      FROM (SELECT 1 AS one) o LEFT JOIN record_sequences b ON b.namespace = ''
        LEFT JOIN record_sequences s ON s.namespace = $1
        LEFT JOIN record_tables t ON t.namespace = $1 AND t.tab = $2 AND t.device IN ('', $3) ORDER BY t.device LIMIT 1
      """, [question.namespace.text, question.table.text, question.deviceID])
    let device = found?.string(.device) == "" ? nil : question.deviceID
    let place = RecordPlace(namespace: question.namespace, table: question.table, device: device)
    // Devices that know changes before the base only get all records.
    let base = found?.int64(.base) ?? 0
    let (newest, floor) = (max(found?.int64(.newest) ?? 0, base), max(found?.int64(.floor) ?? 0, base))
    let known = found?.integer(.sequence)
    // A number that was never given says nothing.
    let position = question.after.flatMap { $0 <= newest ? $0 : nil } ?? 0
    let isOther = device != nil && known.map { min($0, position) != found?.int64(.position) } ?? false
    return (try news(to: question, place, known: known, newest: newest, floor: floor), isOther ? position : nil)
  }

  private func news(
    to question: DownQuestion, _ place: RecordPlace, known: Int64?, newest: Int64, floor: Int64
  ) throws -> RecordNews {
    guard let after = question.after, after <= newest, after >= floor else {
      return .all(place, sequence: known ?? newest)
    }
    guard let known, known > after else { return .operations([], sequence: newest) }
    let operations = try operations(of: place, after: after)
    guard operations.count <= RecordLog.operationsMax else { return .all(place, sequence: known) }
    return .operations(operations, sequence: newest)
  }

  private enum OperationColumn: String, SQLiteColumn {
    case number = "server_id"
    case isNamed, id, fields, changedTime, seq, insertSeq
  }

  /// One more than an answer may have, if there are more.
  private func operations(of place: RecordPlace, after: Int64) throws -> [DownOperation] {
    let scope = "\(Self.scope) AND seq > $4"
    let rows = try statements.rows(
      of: OperationColumn.self,
      """
      FROM (
        SELECT server_id, is_named, id, fields, changed_time, seq, insert_seq FROM records WHERE \(scope) AND seq > 0
        UNION ALL
        SELECT server_id, is_named, id, NULL, changed_time, seq, 0 FROM deleted_records WHERE \(scope)) o
      ORDER BY seq LIMIT \(RecordLog.operationsMax + 1)
      """, [place.namespace.text, place.table.text, place.owner, after])
    return rows.compactMap { row in
      guard let (serverID, localID) = Self.ids(row) else { return nil }
      let fields = row.string(.fields)
      return DownOperation(
        sequence: row.int64(.seq), op: String(row.int64(.seq)), table: place.table, id: serverID, localID: localID,
        kind: fields == nil ? .delete : row.int64(.insertSeq) > after ? .insert : .update,
        fields: Array((fields ?? "").utf8), time: row.int64(.changedTime))
    }
  }

  /// nil: the row is damaged.
  private static func ids(_ row: SQLRow<OperationColumn>) -> (server: RecordID, local: RecordID?)? {
    guard let id = RecordID(row.text(.id)) else { return nil }
    return row.int64(.isNamed) != 0 ? (id, nil) : RecordID(String(row.int64(.number))).map { ($0, id) }
  }

  /// Reads all records of a table.
  /// - Parameter take: gets the head, then each record; its error ends the reading.
  func readAll(of place: RecordPlace, in store: StoreMark, _ take: (DownLine) throws -> Void) throws {
    let values: [any SQLConvertible] = [place.namespace.text, place.table.text, place.owner]
    let known = try statements.integer("SELECT seq FROM record_tables WHERE \(Self.scope)", values)
    let newest = try statements.integer(
      "SELECT max(seq) FROM record_sequences WHERE namespace IN ('', $1)", [place.namespace.text])
    let count = Int(try statements.integer("SELECT count(*) FROM records WHERE \(Self.scope)", values) ?? 0)
    try take(
      .head(
        DownHead(
          isFull: true, sequence: known ?? newest ?? 0, count: count, store: store,
          isUnheard: known == nil && count == 0)))
    var last = ""
    while true {
      let rows = try statements.rows(
        of: OperationColumn.self, "FROM records WHERE \(Self.scope) AND id > $4 ORDER BY id LIMIT \(Self.readMax)",
        values + [last])
      for row in rows {
        guard let (serverID, localID) = Self.ids(row) else {
          throw SQLiteError.corrupt("a record has a damaged id")
        }
        try take(
          .record(
            DownRecord(
              id: serverID, localID: localID, fields: Array(row.text(.fields).utf8), time: row.int64(.changedTime))))
      }
      guard rows.count == Self.readMax, let end = rows.last else { return }
      last = end.text(.id)
    }
  }
}
