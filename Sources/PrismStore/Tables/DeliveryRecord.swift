import PrismProtocol
import PrismSQLite

/// A row of `settled`: a packet that was accepted within the last 24 h. For `trace`, and so that the old pages of a damaged
/// file bring nothing back.
struct DeliveryRecord: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn { case id, namespace, kind, settledTime, attempts, wasDuplicate, members, heldTime }

  var id = PacketID.zero
  var queue = QueueID(namespace: 0, kind: .meta)
  var receipt = Disposition.Receipt(unixMilliseconds: 0, attempts: 0, wasDuplicate: false)
  var members = IDRuns()
  /// When it was settled, by the held clock.
  var heldTime: Int64 = 0

  mutating func pass(_ row: inout RowFields<Column>) {
    row(.id, &id)
    row.queue(.namespace, .kind, &queue)
    row(.settledTime, &receipt.unixMilliseconds)
    row(.attempts, &receipt.attempts)
    row(.wasDuplicate, &receipt.wasDuplicate)
    row(.members, &members)
    var held: Int64? = heldTime
    row(.heldTime, &held)
    heldTime = held ?? receipt.unixMilliseconds
  }
}
