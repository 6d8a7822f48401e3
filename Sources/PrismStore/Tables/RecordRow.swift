import PrismProtocol
import PrismSQLite

/// A row of `records`: one record, or the tombstone of a deleted one.
struct RecordRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case number, tab, id
    case serverID = "server_id"
    case state, sent, flags, next, version
    case changedTime = "changed_time"
    case position, refusal, fields, checksum, base, owner
  }

  private static let (changedFlag, knownFlag): (Int64, Int64) = (1, 2)
  /// The highest: rows of refused records have at least this value.
  static let refusedFlag: Int64 = 4

  /// 0 before it is inserted.
  var number: Int64 = 0
  let table: Int
  let id: RecordID
  var serverID: RecordID?
  var standing: RecordStanding
  var version: Int64
  /// Milliseconds since 1970.
  var changedTime: Int64
  /// The order of waiting changes: of the first that is not sent.
  var position: Int64
  /// The server's words where it refused the last operation.
  var refusal: String?
  /// A JSON object. A tombstone keeps the last one.
  var fields: [UInt8]
  /// Of the fields that the server has (`DownMerging.base`); nil: not known, or the table is `up`.
  var base: Int64?
  /// The user who put it first; nil: not known.
  let owner: RowOwner?

  init(table: Int, id: RecordID, fields: [UInt8], owner: RowOwner? = nil) {
    (self.table, self.id, self.fields, self.owner) = (table, id, fields, owner)
    (standing, version, changedTime, position) = (RecordStanding(), 0, 0, 0)
  }

  init?(_ row: some SQLiteValues<Column>) {
    guard let number = row.integer(.number), let table = row.integer(.tab),
      let id = row.string(.id).flatMap({ RecordID($0) }), let version = row.integer(.version),
      let changedTime = row.integer(.changedTime), let position = row.integer(.position),
      let fields = row.data(.fields), let standing = Self.standing(row)
    else { return nil }
    (self.number, self.table, self.id, self.standing) = (number, Int(table), id, standing)
    (self.version, self.changedTime, self.position, self.fields) = (version, changedTime, position, fields)
    serverID = row.string(.serverID).flatMap { RecordID($0) }
    refusal = row.string(.refusal)
    base = row.integer(.base)
    owner = row.integer(.owner).map { RowOwner(stored: $0) }
    guard row.integer(.checksum) == checksum else { return nil }
  }

  private static func standing(_ row: some SQLiteValues<Column>) -> RecordStanding? {
    guard let state = row.integer(.state).flatMap({ RecordState(rawValue: Int($0)) }), let flags = row.integer(.flags)
    else { return nil }
    let sent = row.integer(.sent)
    let kind = sent.flatMap { RecordOperation.Kind(rawValue: Int($0)) }
    guard (sent == nil) == (kind == nil) else { return nil }
    return RecordStanding(
      state: state, sent: kind, isChangedSinceSent: flags & changedFlag != 0, isKnown: flags & knownFlag != 0,
      isRefused: flags & refusedFlag != 0)
  }

  private var flags: Int64 {
    (standing.isChangedSinceSent ? Self.changedFlag : 0) | (standing.isKnown ? Self.knownFlag : 0)
      | (standing.isRefused ? Self.refusedFlag : 0)
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .number: number, .tab: table, .id: id.text, .serverID: serverID?.text, .state: standing.state.rawValue,
      .sent: standing.sent.map { Int64($0.rawValue) }, .flags: flags, .next: standing.next?.rawValue ?? 0,
      .version: version, .changedTime: changedTime, .position: position, .refusal: refusal, .fields: fields,
      .checksum: checksum, .base: base, .owner: owner?.number,
    ])
  }

  /// Of every other column. Rows that were written before `base` and `owner` came have the same.
  var checksum: Int64 {
    var sum = RecordChecksum(
      number, Int64(table), Int64(standing.state.rawValue), Int64(standing.sent?.rawValue ?? 0), flags, version,
      changedTime, position)
    sum.add(id.text)
    sum.add(serverID?.text ?? "")
    sum.add(refusal ?? "")
    sum.add(fields)
    if let base { sum.add([base]) }
    if let owner { sum.add([0, owner.number]) }
    return sum.value
  }

  /// It exists for programs.
  var isThere: Bool { standing.state != .delete }
  /// The id by which the server knows it.
  var knownID: RecordID { serverID ?? id }

  var value: StoredRecord {
    StoredRecord(
      id: id, serverID: serverID, fields: fields, version: version, changedTime: changedTime, state: standing.state,
      refusal: standing.isRefused ? refusal ?? "" : nil)
  }
}
