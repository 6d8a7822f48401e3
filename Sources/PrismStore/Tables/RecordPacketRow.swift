import PrismProtocol
import PrismSQLite

/// A row of `record_packets`: a packet of operations in flight.
struct RecordPacketRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case id, namespace, position
    case createdTime = "created_time"
    case header, items, checksum
  }

  var id: PacketID
  let namespace: Int
  /// Its place in the order of sending.
  var position: Int
  /// Milliseconds since 1970, when it was claimed.
  let createdTime: Int64
  /// The value of `Prism-Ledger`.
  let header: String
  /// Operations in it.
  var items: Int

  init(id: PacketID, namespace: Int, position: Int, createdTime: Int64, header: String, items: Int) {
    (self.id, self.namespace, self.position) = (id, namespace, position)
    (self.createdTime, self.header, self.items) = (createdTime, header, items)
  }

  init?(_ row: some SQLiteValues<Column>) {
    guard let id = row.data(.id).flatMap({ PacketID(bytes: $0) }), let namespace = row.integer(.namespace),
      let position = row.integer(.position), let created = row.integer(.createdTime), let header = row.string(.header),
      let items = row.integer(.items), items > 0
    else { return nil }
    self.init(
      id: id, namespace: Int(namespace), position: Int(position), createdTime: created, header: header,
      items: Int(items))
    guard row.integer(.checksum) == checksum else { return nil }
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .id: id.bytes, .namespace: namespace, .position: position, .createdTime: createdTime, .header: header,
      .items: items, .checksum: checksum,
    ])
  }

  /// Without its position, which other packets move.
  var checksum: Int64 {
    var sum = RecordChecksum(Int64(namespace), createdTime, Int64(items))
    sum.add(id.bytes)
    sum.add(header)
    return sum.value
  }
}
