import CDeflate
import PrismSQLite

/// A row of `contexts`: the common information of a session, once for all its rows.
struct ContextRecord: CheckedRecord {
  enum Column: String, SQLiteColumn {
    case id, namespace
    case lastSequence = "last_sequence"
    case checksum, members, user
  }

  let id: Int64
  let namespace: Int
  /// The last row that may refer to it; `Int64.max` while its session lives.
  var lastSequence = Int64.max
  /// A JSON object's members, without its braces.
  let members: [UInt8]
  let owner: RowOwner

  init(id: Int64, namespace: Int, members: [UInt8], owner: RowOwner) {
    (self.id, self.namespace, self.members, self.owner) = (id, namespace, members, owner)
  }

  init?(_ row: some SQLiteValues<Column>) {
    guard let id = row.integer(.id), let namespace = row.integer(.namespace), let members = row.data(.members) else {
      return nil
    }
    let owner = RowOwner(stored: row.integer(.user) ?? RowOwner.unknown.number)
    self.init(id: id, namespace: Int(namespace), members: members, owner: owner)
    guard row.integer(.checksum) == checksum else { return nil }
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .id: id, .namespace: namespace, .lastSequence: lastSequence, .checksum: checksum, .members: members,
      .user: owner.number,
    ])
  }

  /// Without `last_sequence`, which changes when the session ends.
  var checksum: Int64 {
    let numbers: [3 of Int64] = [id, Int64(namespace), owner.number]
    // Versions before 3 knew no owner.
    let count = owner == .unknown ? 16 : 24
    let crc = withUnsafeBytes(of: numbers) { libdeflate_crc32(0, $0.baseAddress, count) }
    return Int64(members.isEmpty ? crc : libdeflate_crc32(crc, members, members.count))
  }
}
