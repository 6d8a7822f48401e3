import PrismPacket
import PrismProtocol

/// The server's changes that a device has to learn, within one transaction of one snapshot.
struct PostgreSQLRecordNews {
  private let connection: PostgreSQLConnection
  private let deadline: Deadline

  init(_ connection: PostgreSQLConnection, _ deadline: Deadline) {
    (self.connection, self.deadline) = (connection, deadline)
  }

  func reply(to question: DownQuestion) throws(PostgreSQLError) -> RecordReply {
    // The fleet's row sorts first.
    let found = try connection.query(
      """
      SELECT s.seq, t.device, t.seq, t.floor, b.seq, one.id, one.life,
        $4::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM streams n WHERE n.device = $3 AND n.namespace = $1
          AND n.kind = $5::"char" AND (n.last_packet = $4::uuid
            OR EXISTS (SELECT FROM packets p WHERE p.packet = $4::uuid AND p.stream = n.id)))
      FROM store_mark one
      LEFT JOIN record_sequences b ON b.namespace = ''
      LEFT JOIN record_sequences s ON s.namespace = $1
      LEFT JOIN record_tables t ON t.namespace = $1 AND t.tab = $2 AND t.device IN ('', $3) ORDER BY t.device LIMIT 1
      """,
      [
        question.namespace.text, question.table.text, question.deviceID, question.lastPacket?.description,
        RowKind.records.tablePrefix,
      ], by: deadline)
    let isOfFleet = !found.isNull(0, 1) && found.text(0, 1).isEmpty
    let place = RecordPlace(
      namespace: question.namespace, table: question.table, device: isOfFleet ? nil : question.deviceID)
    let base = found.int(0, 4)
    let (newest, floor) = (max(found.int(0, 0), base), max(found.int(0, 3), base))
    let known = found.isNull(0, 1) ? nil : found.int(0, 2)
    var reply = RecordReply(
      news: .operations([], sequence: newest), store: StoreMark(id: found.int(0, 5), life: found.int(0, 6)),
      isChainBroken: found.bool(0, 7))
    guard let after = question.after, after <= newest, after >= floor else {
      reply.news = .all(place, sequence: known ?? newest)
      return reply
    }
    guard let known, known > after else { return reply }
    let operations = try operations(of: place, after: after)
    reply.news =
      operations.count <= RecordLog.operationsMax
      ? .operations(operations, sequence: newest) : .all(place, sequence: known)
    return reply
  }

  /// One more than an answer may have, if there are more.
  private func operations(of place: RecordPlace, after: Int64) throws(PostgreSQLError) -> [DownOperation] {
    let scope = "namespace = $1 AND tab = $2 AND device = $3 AND seq > $4::bigint"
    let found = try connection.query(
      """
      SELECT server_id, is_named, id, fields, changed_time, seq, insert_seq FROM (
        SELECT server_id, is_named, id, fields, changed_time, seq, insert_seq FROM records WHERE \(scope) AND seq > 0
        UNION ALL
        SELECT server_id, is_named, id, NULL, changed_time, seq, 0 FROM deleted_records WHERE \(scope)) o
      ORDER BY seq LIMIT \(RecordLog.operationsMax + 1)
      """, [place.namespace.text, place.table.text, place.owner, String(after)], by: deadline)
    return (0..<found.count).compactMap { row in
      let (id, isNamed) = (RecordID(found.text(row, 2)), found.bool(row, 1))
      guard let id, let serverID = isNamed ? id : RecordID(String(found.int(row, 0))) else { return nil }
      let isGone = found.isNull(row, 3)
      return DownOperation(
        sequence: found.int(row, 5), op: String(found.int(row, 5)), table: place.table, id: serverID,
        localID: isNamed ? nil : id, kind: isGone ? .delete : found.int(row, 6) > after ? .insert : .update,
        fields: [UInt8](found.bytes(row, 3)), time: found.int(row, 4))
    }
  }

  // MARK: All records

  func beginReadingAll(of place: RecordPlace) throws(PostgreSQLError) -> DownHead {
    let values = [place.namespace.text, place.table.text, place.owner]
    let scope = "namespace = $1 AND tab = $2 AND device = $3"
    let head = try connection.query(
      """
      SELECT coalesce((SELECT seq FROM record_tables WHERE \(scope)),
          (SELECT max(seq) FROM record_sequences WHERE namespace IN ('', $1)), 0),
        (SELECT count(*) FROM records WHERE \(scope)), (SELECT count(*) FROM record_tables WHERE \(scope)), s.id, s.life
      FROM store_mark s
      """, values, by: deadline)
    _ = try connection.query(
      """
      DECLARE prism_all NO SCROLL CURSOR FOR
        SELECT server_id, is_named, id, fields, changed_time FROM records WHERE \(scope) ORDER BY id
      """, values, by: deadline)
    return DownHead(
      isFull: true, sequence: head.int(0, 0), count: Int(head.int(0, 1)),
      store: StoreMark(id: head.int(0, 3), life: head.int(0, 4)), isUnheard: head.int(0, 1) + head.int(0, 2) == 0)
  }

  /// - Returns: the next records; empty behind the last.
  func nextRecords(_ count: Int) throws(PostgreSQLError) -> [DownRecord] {
    let found = try connection.query("FETCH \(count) FROM prism_all", by: deadline)
    var records: [DownRecord] = []
    for row in 0..<found.count {
      let (id, isNamed) = (RecordID(found.text(row, 2)), found.bool(row, 1))
      guard let id, let serverID = isNamed ? id : RecordID(String(found.int(row, 0))) else {
        throw PostgreSQLError(kind: .lost, message: "a record has a damaged id")
      }
      records.append(
        DownRecord(
          id: serverID, localID: isNamed ? nil : id, fields: [UInt8](found.bytes(row, 3)), time: found.int(row, 4)))
    }
    return records
  }
}
