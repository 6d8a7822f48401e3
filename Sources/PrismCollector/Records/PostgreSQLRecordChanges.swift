import PrismProtocol

/// Makes changes of the server's to one table, within a transaction.
struct PostgreSQLRecordChanges {
  private let connection: PostgreSQLConnection
  private let place: RecordPlace
  private let deadline: Deadline
  private let table: PostgreSQLRecordTable

  init(_ connection: PostgreSQLConnection, _ place: RecordPlace, _ deadline: Deadline) {
    (self.connection, self.place, self.deadline) = (connection, place, deadline)
    table = PostgreSQLRecordTable(connection: connection, deadline: deadline)
  }

  /// - Returns: a result each, or the first refusal; then the transaction is to be rolled back.
  func make(
    _ changes: [RecordChange], if condition: ChangeCondition
  ) throws(PostgreSQLError) -> Result<[RecordChanged], RecordFailure> {
    _ = try connection.query(
      "SELECT pg_advisory_xact_lock(\(PostgreSQLRecordFunctions.lockClass), hashtext($1))", [place.namespace.text],
      by: deadline)
    if let refusal = try otherOwner() { return .failure(.refused(refusal, index: 0)) }
    var (ids, fields): ([String], [String?]) = ([], [])
    // Puts without a condition need not be looked at before.
    for (index, change) in changes.enumerated() {
      let known =
        change.id.isNumber || condition != .always || change.isPatch ? try table.find(change.id, in: place) : nil
      if let refusal = Self.refusal(change, known, condition) { return .failure(.refused(refusal, index: index)) }
      let text = change.fields(of: known)
      if let text, text.count > RecordRequest.fieldsBytesMax {
        return .failure(.refused(.tooLarge(bytes: text.count), index: index))
      }
      ids.append(known?.id ?? change.id.text)
      fields.append(text.map { String(decoding: $0, as: UTF8.self) })
    }
    let letters = try connection.query(
      "SELECT letters FROM prism_change_records($1, $2, $3, $4, $5)",
      [
        place.namespace.text, place.owner, place.table.text, PostgreSQLArray.text(ids), PostgreSQLArray.text(fields),
      ], by: deadline)
    return .success(try results(Array(letters.bytes(0, 0)), ids))
  }

  private static func refusal(
    _ change: RecordChange, _ known: CollectedRecord?, _ condition: ChangeCondition
  ) -> RecordRefusal? {
    guard condition.holds(for: known) else { return .condition }
    return known == nil && change.id.isNumber && change.action != .delete ? .unknownNumber : nil
  }

  /// A table is the fleet's from its first record on, or the devices'.
  private func otherOwner() throws(PostgreSQLError) -> RecordRefusal? {
    let found = try connection.query(
      """
      SELECT EXISTS (SELECT FROM record_tables WHERE namespace = $1 AND tab = $2 AND device = ''),
        EXISTS (SELECT FROM records WHERE namespace = $1 AND tab = $2 AND device > '')
      """, [place.namespace.text, place.table.text], by: deadline)
    let (isOfFleet, isOfDevices) = (found.bool(0, 0), found.bool(0, 1))
    if place.device != nil { return isOfFleet ? .isOfFleet : nil }
    return !isOfFleet && isOfDevices ? .isOfDevices : nil
  }

  private func results(_ letters: [UInt8], _ ids: [String]) throws(PostgreSQLError) -> [RecordChanged] {
    // Each of many is only counted.
    let record = ids.count == 1 ? try table.find(key: ids[0], in: place) : nil
    return zip(letters, ids).map { letter, id in
      switch letter {
      case UInt8(ascii: "a"): .absent
      case UInt8(ascii: "x"): .deleted
      default: .stored(record, wasMade: letter == UInt8(ascii: "i"))
      }
    }
  }
}
