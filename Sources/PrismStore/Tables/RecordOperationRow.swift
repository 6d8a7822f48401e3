import PrismProtocol
import PrismSQLite

/// A row of `record_operations`: an operation in flight, as it was sent.
struct RecordOperationRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn { case packet, place, record, tab, op, line, checksum }

  var packet: PacketID
  /// Its place in the packet, from 0.
  var place: Int
  /// The record's number.
  let record: Int64
  let table: Int
  let op: String
  let line: [UInt8]

  init(packet: PacketID, place: Int, record: Int64, table: Int, op: String, line: [UInt8]) {
    (self.packet, self.place, self.record) = (packet, place, record)
    (self.table, self.op, self.line) = (table, op, line)
  }

  init?(_ row: some SQLiteValues<Column>) {
    guard let packet = row.data(.packet).flatMap({ PacketID(bytes: $0) }), let place = row.integer(.place),
      let record = row.integer(.record), let table = row.integer(.tab), let op = row.string(.op),
      let line = row.data(.line)
    else { return nil }
    self.init(packet: packet, place: Int(place), record: record, table: Int(table), op: op, line: line)
    guard row.integer(.checksum) == checksum else { return nil }
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .packet: packet.bytes, .place: place, .record: record, .tab: table, .op: op, .line: line, .checksum: checksum,
    ])
  }

  /// Of every column before it.
  var checksum: Int64 {
    var sum = RecordChecksum(Int64(place), record, Int64(table))
    sum.add(packet.bytes)
    sum.add(op)
    sum.add(line)
    return sum.value
  }
}
