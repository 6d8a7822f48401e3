import PrismProtocol
import PrismSQLite

/// A row of `packets`: a packet in flight and the rows that belong to it.
struct PacketRecord: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case id, namespace, kind, position, createdTime, bytes, hasClientIDs, header, members, checksum, rule, clock
  }

  /// The most rows that a record may name; a damaged one could name more.
  private static let membersMax = 1 << 20

  var id = PacketID.zero
  var queue = QueueID(namespace: 0, kind: .meta)
  /// Its place in the order of sending.
  var position = 0
  /// Milliseconds since 1970, when it was claimed.
  var createdTime: Int64 = 0
  /// Sum of `size`.
  var bytes = 0
  /// Rows of it have ids that their clients gave.
  var hasClientIDs = false
  /// The value of `Prism-Ledger`.
  var header = ""
  var members = IDRuns()
  /// The trigger that let the rows go; nil: they left by themselves.
  var rule: String?
  /// At `createdTime`.
  var clock: ClockStamp?

  /// The checksum is without the position, which other packets move, and the bytes, which only the quota needs.
  mutating func pass(_ row: inout RowFields<Column>) {
    row.queue(.namespace, .kind, &queue)
    row(.createdTime, &createdTime)
    row(.hasClientIDs, &hasClientIDs)
    row(.id, &id)
    row(.header, &header)
    row(.members, &members)
    row(.rule, &rule)
    row(.clock, &clock)
    row.check(.checksum, isNewer: true)
    row(.position, &position)
    row(.bytes, &bytes)
  }

  var isPossible: Bool { members.count <= Self.membersMax }
}
