import PrismProtocol
import PrismSQL
import PrismSQLite

/// Whether a device has the server's newest change of its record, by what it said last.
struct RecordFetch: Sendable, Equatable {
  /// The device has the changes of the table up to this number.
  var position: Int64 = 0
  /// When it said first that it has this one; milliseconds since 1970. 0: it did not.
  var time: Int64 = 0
  /// The fields that it had before a change that it does not have; nil: it had no such record, or they are not known.
  var reported: [UInt8]?
}

extension CollectedRecord {
  /// The fields that the device has, if they are known.
  var fieldsThere: [UInt8]? { sequence <= fetch.position ? fields : fetch.reported }
}

/// The positions of devices: `after` of their questions and operations (docs/records.md, "Desired and reported").
struct RecordPositions {
  let statements: SQLStatements

  private static let scope = "namespace = $1 AND device = $2 AND tab = $3"

  private enum PositionColumn: String, SQLiteColumn { case seq, fetchedSeq }

  private static func key(_ place: RecordPlace) -> [any SQLConvertible] {
    [place.namespace.text, place.owner, place.table.text]
  }

  /// Notes the position that a device said. - Parameters:
  ///   - isOld: it may have been said before another one, as that of a packet that is sent again.
  ///   - now: milliseconds since 1970.
  func hear(_ after: Int64, of place: RecordPlace, isOld: Bool = false, now: Int64) throws {
    let key = Self.key(place)
    guard let row = try statements.first(of: PositionColumn.self, "FROM record_tables WHERE \(Self.scope)", key) else {
      return
    }
    let (fetched, position) = (row.int64(.fetchedSeq), min(after, row.int64(.seq)))
    guard isOld ? position > fetched : position != fetched else { return }
    try statements.run("UPDATE record_tables SET fetched_seq = $4 WHERE \(Self.scope)", key + [position])
    // A device that knows less than before lost its records: what it has is not known.
    try statements.run(
      """
      UPDATE records SET fetched_time = $4, reported = NULL WHERE \(Self.scope) AND seq > $5 AND seq <= $6
      """, key + [position > fetched ? now : 0, min(fetched, position), max(fetched, position)])
  }

  func hear(_ operations: [RecordOperation], from stream: StreamID, newest: Int64?, now: Int64) throws {
    let said = operations.compactMap { one in one.after.map { (one.table, $0) } }.filter {
      1...max(1, newest ?? 0) ~= $1
    }
    for (table, after) in Dictionary(said, uniquingKeysWith: max) {
      let place = RecordPlace(namespace: stream.namespace, table: table, device: stream.device)
      try hear(after, of: place, isOld: true, now: now)
    }
  }

  /// Whether the record is deleted, and its device does not have that change.
  func isDeletionPending(_ id: RecordID, in place: RecordPlace) throws -> Bool {
    try statements.run(
      """
      SELECT 1 FROM deleted_records WHERE \(Self.scope) AND (id = $4 OR is_named = 0 AND CAST(server_id AS text) = $4)
        AND seq > (SELECT fetched_seq FROM record_tables WHERE \(Self.scope))
      """, Self.key(place) + [id.text]) > 0
  }
}
