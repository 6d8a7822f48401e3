import PrismProtocol
import PrismSQLite

/// A row of `packets`: a packet in flight and the rows that belong to it.
struct PacketRecord: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case id, namespace, kind, position
    case createdTime = "created_time"
    case bytes
    case hasClientIDs = "has_client_ids"
    case header
    case members, checksum, rule
  }

  /// The most rows that a record may name; a damaged one could name more.
  private static let membersMax = 1 << 20

  var id: PacketID
  let queue: QueueID
  /// Its place in the order of sending.
  var position: Int
  /// Milliseconds since 1970, when it was claimed.
  let createdTime: Int64
  /// Sum of `size`.
  var bytes: Int
  /// Rows of it have ids that their clients gave.
  let hasClientIDs: Bool
  /// The value of `Prism-Ledger`.
  let header: String
  var members: IDRuns
  /// The trigger that let the rows go; nil: they left by themselves.
  var rule: String?

  init(
    id: PacketID, queue: QueueID, position: Int, createdTime: Int64, bytes: Int, hasClientIDs: Bool, header: String,
    members: IDRuns, rule: String? = nil
  ) {
    (self.id, self.queue, self.position, self.createdTime) = (id, queue, position, createdTime)
    (self.bytes, self.hasClientIDs, self.header, self.members) = (bytes, hasClientIDs, header, members)
    self.rule = rule
  }

  /// nil if it is not what was written. Databases of version 1 have no checksum.
  init?(_ row: some SQLiteValues<Column>) {
    guard let id = row.data(.id).flatMap({ PacketID(bytes: $0) }),
      let queue = QueueID(row.integer(.namespace), row.integer(.kind)), let position = row.integer(.position),
      let created = row.integer(.createdTime), let bytes = row.integer(.bytes),
      let hasClientIDs = row.integer(.hasClientIDs), let header = row.string(.header),
      let members = row.string(.members).flatMap({ IDRuns(text: $0) }), members.count <= Self.membersMax
    else { return nil }
    self.init(
      id: id, queue: queue, position: Int(position), createdTime: created, bytes: Int(bytes),
      hasClientIDs: hasClientIDs != 0, header: header, members: members, rule: row.string(.rule))
    guard !row.has(.checksum) || row.integer(.checksum) == checksum else { return nil }
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .id: id.bytes, .namespace: queue.namespace, .kind: queue.kind.number, .position: position,
      .createdTime: createdTime, .bytes: bytes, .hasClientIDs: hasClientIDs, .header: header, .members: members.text,
      .checksum: checksum, .rule: rule,
    ])
  }

  /// Without its position, which other packets move, and its bytes, which only the quota needs.
  var checksum: Int64 {
    var sum = RecordChecksum(Int64(queue.namespace), Int64(queue.kind.number), createdTime, hasClientIDs ? 1 : 0)
    sum.add(id.bytes)
    sum.add(header)
    sum.add(members.text)
    if let rule { sum.add(rule) }
    return sum.value
  }
}
