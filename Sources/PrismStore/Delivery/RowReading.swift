import PrismProtocol
import PrismSQLite

/// Reads the rows of one queue for a packet, each checked against its checksum and its context.
struct RowReading {
  private(set) var builder: PacketBuilder
  /// Rows that are not what was stored, ascending.
  private(set) var damaged = IDRuns()
  private let queue: QueueID
  private let transaction: StoreTransaction
  private var clocks: RowClocks
  /// Members that all rows of the packet have in common.
  private let mark: [UInt8]
  /// The rendering of the row before, which usually is that of the next one too.
  private var rendering: (type: Int64, context: Int64, value: RowRendering, pastStamp: ClockStamp?)?

  /// - Parameter rule: the trigger that let the rows go.
  init(_ builder: PacketBuilder, _ queue: QueueID, rule: String? = nil, _ transaction: StoreTransaction) {
    mark = rule.map { $0.isEmpty ? [] : Array("\"TRIGGER\":\"\($0)\"".utf8) } ?? []
    (self.builder, self.queue, self.transaction) = (builder, queue, transaction)
    clocks = RowClocks(transaction.memory.clock.book)
  }

  /// - Parameter row: what `stored` was read from.
  /// - Returns: false: the packet is closed, and the row is not in it.
  mutating func take(_ stored: StoredRow, _ row: SQLiteRow<StoredRow.Column>) throws(SQLiteError) -> Bool {
    if rendering?.type != stored.type || rendering?.context != stored.context {
      rendering = try transaction.rendering(of: stored, queue).map { value in
        (stored.type, stored.context, value, value.context.withUnsafeBytes { clocks.pastStamp(in: $0) })
      }
    }
    guard StoredRow.isWhole(stored, row), let (_, _, rendering, pastStamp) = rendering else {
      try damaged.append(read: stored.id)
      return true
    }
    let stamp = rendering.context.isEmpty ? clocks.pastStamp(in: stored.body) : pastStamp
    let clock = stamp.map { clockMembers(stored, $0) } ?? []
    let both = clock.isEmpty || mark.isEmpty ? clock + mark : clock + [UInt8(ascii: ",")] + mark
    return try builder.add(stored, rendering, clock: both)
  }

  /// A crash that says itself when it was is of an earlier run, whose clock is not known.
  private func clockMembers(_ row: StoredRow, _ stamp: ClockStamp) -> [UInt8] {
    row.flags.contains(.ownCreateTime) ? [] : clocks.members(of: stamp, createdTime: row.createdTime)
  }

  /// Reads exactly `members`. Those that are damaged or missing are not in the builder.
  static func read(
    _ members: IDRuns, of queue: QueueID, rule: String? = nil, _ transaction: StoreTransaction
  ) throws(SQLiteError) -> PacketBuilder {
    let expected = transaction.memory.state[queue].metaBytesExpected(of: members.count, kind: queue.kind)
    var reading = RowReading(.unlimited(metaBytesExpected: expected), queue, rule: rule, transaction)
    try transaction.forEachRun(of: members, queue, .readRange) { (read) throws(SQLiteError) in
      try read.forEachRow(of: StoredRow.Column.self) { (row) throws(SQLiteError) in
        _ = try reading.take(StoredRow(row, hasPayload: queue.kind.hasPayload), row)
      }
    }
    return reading.builder
  }
}
