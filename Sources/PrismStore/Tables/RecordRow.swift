import PrismProtocol
import PrismSQLite

/// A row of `records`: one record, or the tombstone of a deleted one.
struct RecordRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case number, tab, id, serverID, state, sent, flags, next, version, changedTime, position, refusal, fields, checksum
    case base, owner, clock
  }

  private static let (changedFlag, knownFlag): (Int64, Int64) = (1, 2)
  /// The highest: rows of refused records have at least this value.
  static let refusedFlag: Int64 = 4

  /// Deletions of a table that are kept after the server carried them out: the last ones.
  static let keptDeletionsMax = 1000

  /// 0 before it is inserted.
  var number: Int64 = 0
  var table = 0
  var id = RecordID.unread
  var serverID: RecordID?
  var standing = RecordStanding()
  var version: Int64 = 0
  /// Milliseconds since 1970. Of a record that was read, it is by the clock as it is set now, unless it has a `clock`.
  var changedTime: Int64 = 0
  /// The order of waiting changes: of the first that is not sent.
  var position: Int64 = 0
  /// The server's words where it refused the last operation.
  var refusal: String?
  /// A JSON object. A tombstone keeps the last one.
  var fields: [UInt8] = []
  /// Of the fields that the server has (`DownMerging.base`); nil: not known, or the table is `up`.
  var base: Int64?
  /// The user who put it first; nil: not known.
  var owner: RowOwner?
  /// At `changedTime`. Of a record that was read: that of an earlier boot, in which the clock was set: the time is right.
  var clock: ClockStamp?

  /// The checksum of rows that were written before `base`, `owner` and `clock` came is the same.
  mutating func pass(_ row: inout RowFields<Column>) {
    var (state, sent, flags) = (standing.state, standing.sent, flags)
    var next = standing.next?.rawValue ?? 0
    row(.number, &number)
    row(.tab, &table)
    row(.state, &state)
    row(.sent, &sent, absent: .integer(0))
    row(.flags, &flags)
    row(.version, &version)
    row(.changedTime, &changedTime)
    row(.position, &position)
    row(.id, &id)
    row(.serverID, &serverID, absent: .text([]))
    row(.refusal, &refusal, absent: .text([]))
    row(.fields, &fields)
    row(.base, &base)
    row(.owner, &owner, isSummed: false)
    if let owner { row.add([0, owner.number]) }
    row(.clock, &clock)
    row.check(.checksum)
    row(.next, &next)
    let found = RecordStanding(
      state: state, sent: sent, isChangedSinceSent: flags & Self.changedFlag != 0,
      isKnown: flags & Self.knownFlag != 0, isRefused: flags & Self.refusedFlag != 0)
    if let found { standing = found } else { row.isWhole = false }
  }

  private var flags: Int64 {
    (standing.isChangedSinceSent ? Self.changedFlag : 0) | (standing.isKnown ? Self.knownFlag : 0)
      | (standing.isRefused ? Self.refusedFlag : 0)
  }

  /// The server carried the deletion out. It is kept for a store that has the record again, under a number of its own for the table.
  var isKeptDeletion: Bool { table < 0 }
  static func keptTable(of table: Int) -> Int { -table }
  /// The number of the table that declares it.
  var declaredTable: Int { abs(table) }
  /// It exists for programs.
  var isThere: Bool { standing.state != .delete }
  var knownID: RecordID { serverID ?? id }

  var value: StoredRecord {
    StoredRecord(
      id: id, serverID: serverID, fields: fields, version: version, changedTime: changedTime, state: standing.state,
      refusal: standing.isRefused ? refusal ?? "" : nil)
  }
}
