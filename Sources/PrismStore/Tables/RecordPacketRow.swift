import PrismProtocol
import PrismSQLite

/// A row of `record_packets`: a packet of operations in flight.
struct RecordPacketRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn { case id, namespace, position, createdTime, header, items, checksum, clock }

  var id = PacketID.zero
  var namespace = 0
  /// Its place in the order of sending.
  var position = 0
  /// Milliseconds since 1970, when it was claimed.
  var createdTime: Int64 = 0
  /// The value of `Prism-Ledger`.
  var header = ""
  /// Operations in it.
  var items = 0
  /// At `createdTime`.
  var clock: ClockStamp?

  mutating func pass(_ row: inout RowFields<Column>) {
    row(.namespace, &namespace)
    row(.createdTime, &createdTime)
    row(.items, &items)
    row(.id, &id)
    row(.header, &header)
    row(.clock, &clock)
    row.check(.checksum)
    // Other packets move it.
    row(.position, &position)
  }

  var isPossible: Bool { items > 0 }
}

/// A row of `record_operations`: an operation in flight, as it was sent.
struct RecordOperationRow: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn { case packet, place, record, tab, op, line, checksum }

  var packet = PacketID.zero
  /// Its place in the packet, from 0.
  var place = 0
  var record: Int64 = 0
  var table = 0
  var op = ""
  var line: [UInt8] = []

  mutating func pass(_ row: inout RowFields<Column>) {
    row(.place, &place)
    row(.record, &record)
    row(.tab, &table)
    row(.packet, &packet)
    row(.op, &op)
    row(.line, &line)
    row.check(.checksum)
  }
}
