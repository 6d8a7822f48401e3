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

/// Takes rows in their order until the packet is full.
struct PacketBuilder {
  let itemsMax: Int
  let bytesMax: Int
  let metaBytesMax: Int

  private(set) var members = IDRuns()
  private(set) var metas: [UInt8] = []
  private(set) var payloads: [[UInt8]] = []
  private(set) var bytes = 0
  private(set) var hasClientIDs = false
  /// The members of the last line of common information in `metas`.
  private var common: [UInt8] = []
  private static let (commonHead, commonTail) = (Array(#"{"$common":{"#.utf8), Array("}}".utf8))

  /// - Parameter metaBytesExpected: grown by doubling, the metas would be copied once more than they are long.
  init(itemsMax: Int, bytesMax: Int, metaBytesMax: Int, metaBytesExpected: Int, spare: [UInt8] = []) {
    (self.itemsMax, self.bytesMax, self.metaBytesMax) = (itemsMax, bytesMax, metaBytesMax)
    metas = spare
    metas.removeAll(keepingCapacity: true)
    metas.reserveCapacity(min(bytesMax, metaBytesMax, metaBytesExpected))
  }

  /// Takes every row: for a packet whose rows were settled when it was claimed.
  static func unlimited(metaBytesExpected: Int) -> Self {
    Self(itemsMax: .max, bytesMax: .max, metaBytesMax: .max, metaBytesExpected: metaBytesExpected)
  }

  var isFull: Bool { members.count >= itemsMax }

  /// false: the packet is closed, the row is not in it. The first row is always taken.
  /// - Parameter clock: further members that it has in common with others.
  mutating func add(_ row: StoredRow, _ rendering: RowRendering, clock: [UInt8]) throws(SQLiteError) -> Bool {
    let (start, commonBefore) = (metas.count, common)
    guard members.isEmpty || (!isFull && Int(row.size) <= bytesMax - bytes) else { return false }
    let context = row.flags.contains(.selfContained) ? [] : rendering.context
    share(clock.isEmpty ? context : context + (context.isEmpty ? [] : [UInt8(ascii: ",")]) + clock)
    if !metas.isEmpty { metas.append(UInt8(ascii: "\n")) }
    rendering.append(row, to: &metas)
    if !members.isEmpty && metas.count > metaBytesMax {
      metas.removeLast(metas.count - start)
      common = commonBefore
      return false
    }
    if let payload = row.payload { payloads.append([UInt8](payload)) }
    try members.append(read: row.id)
    bytes += Int(row.size)
    hasClientIDs = hasClientIDs || row.flags.contains(.clientID)
    return true
  }

  /// Members that the rows from here on have in common are a line of their own (docs/packet.md, "Common information").
  private mutating func share(_ members: [UInt8]) {
    guard members != common else { return }
    if !metas.isEmpty { metas.append(UInt8(ascii: "\n")) }
    metas += Self.commonHead + members + Self.commonTail
    common = members
  }
}
