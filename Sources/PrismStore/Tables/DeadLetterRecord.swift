import PrismProtocol
import PrismSQLite

/// A row of `dead`: a report that the collector refuses, with everything that is needed to read or send it.
struct DeadLetterRecord: CheckedRecord {
  enum Column: String, SQLiteColumn {
    case number, namespace, kind, row, type, createdTime, flags, size, reportID, packet, status, message, deadTime
    case attempts, body, payload, checksum, user
  }

  /// nil before it is inserted.
  var number: Int64?
  var queue = QueueID(namespace: 0, kind: .meta)
  /// The id that the row had, and has again when it is queued.
  var row: Int64 = 0
  var type: Int64 = 0
  var createdTime: Int64 = 0
  var flags: RowFlags = []
  var size = 0
  var reportID = ""
  var packet = PacketID.zero
  var cause = Disposition.DeadCause(status: 0, message: "", unixMilliseconds: 0, attempts: 0)
  /// Common information included.
  var body: [UInt8] = []
  /// nil for a queue without payloads.
  var payload: [UInt8]?
  var owner = RowOwner.unknown
  /// Whether it is what was written; nil: databases of version 1 have no checksum.
  var isWhole: Bool? = true

  /// The checksum is of what is sent again if the letter is queued again.
  mutating func pass(_ row: inout RowFields<Column>) {
    row(.row, &self.row)
    row(.type, &type)
    row(.createdTime, &createdTime)
    row(.flags, &flags)
    row(.size, &size)
    row(.reportID, &reportID)
    row(.body, &body)
    row(.payload, &payload)
    row(.user, &owner, isSummed: false)
    if owner != .unknown { row.add([owner.number]) }
    isWhole = row.compare(.checksum)
    row(.number, &number)
    row.queue(.namespace, .kind, &queue)
    row(.packet, &packet)
    row(.status, &cause.status)
    row(.message, &cause.message)
    row(.deadTime, &cause.unixMilliseconds)
    row(.attempts, &cause.attempts)
  }

  var isPossible: Bool { (payload != nil) == queue.kind.hasPayload }
}
