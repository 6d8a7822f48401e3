import PrismSQLite

/// A row of `contexts`: the common information of a session, once for all its rows.
struct ContextRecord: CheckedRecord {
  enum Column: String, SQLiteColumn { case id, namespace, lastSequence, checksum, members, user }

  var id: Int64 = 0
  var namespace = 0
  /// The last row that may refer to it; `Int64.max` while its session lives.
  var lastSequence = Int64.max
  /// A JSON object's members, without its braces.
  var members: [UInt8] = []
  var owner = RowOwner.unknown

  mutating func pass(_ row: inout RowFields<Column>) {
    row(.id, &id)
    row(.namespace, &namespace)
    row(.user, &owner, isSummed: false)
    if owner != .unknown { row.add([owner.number]) }
    row(.members, &members, isSummed: false)
    row.add(uncounted: members)
    row.check(.checksum)
    // It changes when the session ends.
    row(.lastSequence, &lastSequence)
  }
}
