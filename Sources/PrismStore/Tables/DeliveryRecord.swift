import PrismProtocol
import PrismSQLite

/// A row of `settled`: a packet that was accepted within the last 24 h. For `trace`, and so that the old pages of a damaged
/// file bring nothing back.
struct DeliveryRecord: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn {
    case id, namespace, kind
    case settledTime = "settled_time"
    case attempts
    case wasDuplicate = "was_duplicate"
    case members
    case heldTime = "held_time"
  }

  let id: PacketID
  let queue: QueueID
  let receipt: Disposition.Receipt
  let members: IDRuns
  /// When it was settled, by the held clock.
  let heldTime: Int64

  init(id: PacketID, queue: QueueID, receipt: Disposition.Receipt, members: IDRuns, heldTime: Int64) {
    (self.id, self.queue, self.receipt, self.members, self.heldTime) = (id, queue, receipt, members, heldTime)
  }

  init?(_ row: some SQLiteValues<Column>) {
    guard let id = row.data(.id).flatMap({ PacketID(bytes: $0) }),
      let queue = QueueID(row.integer(.namespace), row.integer(.kind)), let time = row.integer(.settledTime),
      let attempts = row.integer(.attempts), let wasDuplicate = row.integer(.wasDuplicate),
      let members = row.string(.members).flatMap({ IDRuns(text: $0) })
    else { return nil }
    let receipt = Disposition.Receipt(
      unixMilliseconds: time, attempts: Int(attempts), wasDuplicate: wasDuplicate != 0)
    self.init(id: id, queue: queue, receipt: receipt, members: members, heldTime: row.integer(.heldTime) ?? time)
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .id: id.bytes, .namespace: queue.namespace, .kind: queue.kind.number, .settledTime: receipt.unixMilliseconds,
      .attempts: receipt.attempts, .wasDuplicate: receipt.wasDuplicate, .members: members.text, .heldTime: heldTime,
    ])
  }
}
