import PrismProtocol
import PrismSQLite

/// A row of `dead`: a report that the collector refuses, with everything that is needed to read or send it.
struct DeadLetterRecord: CheckedRecord {
  enum Column: String, SQLiteColumn {
    case number, namespace, kind, row, type
    case createdTime = "created_time"
    case flags, size
    case reportID = "report_id"
    case packet
    case status, message
    case deadTime = "dead_time"
    case attempts, body, payload, checksum, user
  }

  let number: Int64
  let queue: QueueID
  /// The id that the row had, and has again when it is queued.
  let row: Int64
  let type: Int64
  let createdTime: Int64
  let flags: RowFlags
  let size: Int
  let reportID: [UInt8]
  let packet: PacketID
  let cause: Disposition.DeadCause
  /// Common information included.
  let body: [UInt8]
  /// nil for a queue without payloads.
  let payload: [UInt8]?
  let owner: RowOwner
  private let storedChecksum: Int64?

  init?(_ row: some SQLiteValues<Column>) {
    guard let number = row.integer(.number), let queue = QueueID(row.integer(.namespace), row.integer(.kind)),
      let id = row.integer(.row), let type = row.integer(.type), let created = row.integer(.createdTime),
      let flags = row.integer(.flags), let size = row.integer(.size), let reportID = row.data(.reportID),
      let packet = row.data(.packet).flatMap({ PacketID(bytes: $0) }), let cause = Self.cause(row),
      let body = row.data(.body)
    else { return nil }
    (self.number, self.queue, self.row, self.type, createdTime) = (number, queue, id, type, created)
    (self.flags, self.size, self.reportID, self.packet) = (RowFlags(rawValue: flags), Int(size), reportID, packet)
    (self.cause, self.body, payload) = (cause, body, row.data(.payload))
    owner = RowOwner(stored: row.integer(.user) ?? RowOwner.unknown.number)
    storedChecksum = row.integer(.checksum)
    guard (payload != nil) == queue.kind.hasPayload else { return nil }
  }

  private static func cause(_ row: some SQLiteValues<Column>) -> Disposition.DeadCause? {
    guard let status = row.integer(.status), let message = row.string(.message), let time = row.integer(.deadTime),
      let attempts = row.integer(.attempts)
    else { return nil }
    return Disposition.DeadCause(
      status: Int(status), message: message, unixMilliseconds: time, attempts: Int(attempts))
  }

  /// Whether it is what was written.
  var isWhole: Bool { storedChecksum == checksum }
  /// Databases of version 1 have no checksum.
  var isWholeOrUnchecked: Bool { storedChecksum == nil || isWhole }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .number: number, .namespace: queue.namespace, .kind: queue.kind.number, .row: row, .type: type,
      .createdTime: createdTime, .flags: flags.rawValue, .size: size,
      .reportID: String(decoding: reportID, as: UTF8.self), .packet: packet.bytes, .status: cause.status,
      .message: cause.message, .deadTime: cause.unixMilliseconds, .attempts: cause.attempts, .body: body,
      .payload: payload, .checksum: checksum, .user: owner.number,
    ])
  }

  var checksum: Int64 {
    Self.checksum(
      row: row, type: type, createdTime: createdTime, flags: flags, size: Int64(size), reportID: reportID, body: body,
      payload: payload, owner: owner)
  }

  /// Of what is sent again if the letter is queued again.
  static func checksum(
    row: Int64, type: Int64, createdTime: Int64, flags: RowFlags, size: Int64, reportID: [UInt8], body: [UInt8],
    payload: [UInt8]?, owner: RowOwner
  ) -> Int64 {
    var sum = RecordChecksum(row, type, createdTime, flags.rawValue, size)
    sum.add(reportID)
    sum.add(body)
    if let payload { sum.add(payload) }
    // Versions before 3 knew no owner.
    if owner != .unknown { sum.add([owner.number]) }
    return sum.value
  }
}
