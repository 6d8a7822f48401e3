import PrismPacket
import PrismProtocol
import PrismSQL

/// Takes one group of packets in one transaction (docs/collector.md, "PostgreSQL").
struct GroupTransaction {
  private static let lock = "SELECT now(), m.id, m.life, g.* FROM store_mark m, prism_lock_group($1, $2, $3, $4, $5) g"
  private static let store = "SELECT prism_store_group($1, $2, $3, $4)"
  /// Places in a row of `lock`.
  private enum Column {
    static let (number, packets, newest, forgotten, forgottenUnset, forgottenDay) = (3, 4, 5, 6, 7, 8)
    static let (hasPacket, hasPredecessor) = (9, 10)
  }

  let connection: PostgreSQLConnection
  let submissions: [PacketSubmission]
  let quotas: Quotas
  let deadline: Deadline
  let packer: RestPacker
  /// Of the database that stores it.
  private(set) var mark: StoreMark?
  /// Microseconds since 2000.
  private var received: Int64 = 0
  private var numbers: [StreamID: Int64] = [:]

  init(
    _ connection: PostgreSQLConnection, _ submissions: [PacketSubmission], _ quotas: Quotas,
    by deadline: Deadline, _ packer: RestPacker
  ) {
    (self.connection, self.submissions, self.quotas) = (connection, submissions, quotas)
    (self.deadline, self.packer) = (deadline, packer)
  }

  /// - Returns: an outcome a packet, once all is at rest.
  mutating func run() throws(PostgreSQLError) -> [PacketOutcome] {
    try connection.committing(by: deadline) { () throws(PostgreSQLError) in
      let streams = try lock()
      let statements = connection.statements(by: deadline)
      let room = try PostgreSQLError.only { try quotas.room(for: submissions, statements) }
      var group = PacketGroup(
        submissions, streams, room, idsSince: receivedTime - PacketID.knownMilliseconds, in: mark)
      try store(group)
      let tables = RecordTables(PostgreSQLDriver(connection, by: deadline))
      try PostgreSQLError.only {
        try group.carryOut(tables, numbers, now: receivedTime)
        try quotas.take(group.room, statements)
      }
      return group.outcomes
    }
  }

  /// Milliseconds since 1970.
  private var receivedTime: Int64 { received / 1000 + CopyRows.epochSeconds * 1000 }

  private mutating func lock() throws(PostgreSQLError) -> [StreamID: KnownStream] {
    let deliveries = submissions.map(\.packet.delivery)
    let contexts = deliveries.map(\.context)
    let found = try connection.begin(
      with: Self.lock,
      [
        PostgreSQLArray.text(contexts.map(\.deviceID)), PostgreSQLArray.text(contexts.map(\.namespace.text)),
        PostgreSQLArray.text(contexts.map(\.kind.tablePrefix)),
        PostgreSQLArray.text(contexts.map(\.packetID.description)),
        PostgreSQLArray.text(deliveries.map { $0.dependsOn?.description }),
      ], by: deadline)
    guard found.count > 0 else {
      throw PostgreSQLError(kind: .lost, message: PostgreSQLSetup.Refusal.noIdentity.description)
    }
    guard found.count == submissions.count else {
      throw PostgreSQLError(kind: .lost, message: "prism_lock_group answered for another number of packets")
    }
    (received, mark) = (found.int(0, 0), StoreMark(id: found.int(0, 1), life: found.int(0, 2)))
    var streams: [StreamID: KnownStream] = [:]
    for (row, delivery) in deliveries.enumerated() {
      let name = StreamID(delivery.context)
      var stream = streams[name] ?? Self.stream(found, row)
      if found.bool(row, Column.hasPacket) { stream.ids.insert(delivery.context.packetID) }
      if let predecessor = delivery.dependsOn, found.bool(row, Column.hasPredecessor) { stream.ids.insert(predecessor) }
      (streams[name], numbers[name]) = (stream, stream.number)
    }
    return streams
  }

  /// Of all streams ids are forgotten by the day, of some by their number.
  private static func stream(_ found: PostgreSQLResult, _ row: Int) -> KnownStream {
    func time(_ column: Int) -> Int64? { PacketID(bytes: Array(found.bytes(row, column)))?.unixMilliseconds }
    let newest = time(Column.newest)
    // The day's first id is not forgotten.
    let byDay = time(Column.forgottenDay).map { $0 - 1 } ?? -1
    return KnownStream(
      number: found.int(row, Column.number), packets: found.int(row, Column.packets), newestTime: newest,
      forgottenTime: newest.map { min($0, max(time(Column.forgotten) ?? -1, byDay)) },
      forgottenUnsetTime: time(Column.forgottenUnset))
  }

  private mutating func store(_ group: PacketGroup) throws(PostgreSQLError) {
    let stored = group.stored
    guard !stored.isEmpty else { return }
    let reports = stored.filter { $0.packet.records == nil }
    let result = try connection.query(
      Self.store,
      [
        PostgreSQLArray.text(stored.map { numbers[$0.stream].map { String($0) } }),
        PostgreSQLArray.text(stored.map(\.packet.delivery.context.packetID.description)),
        PostgreSQLArray.text(stored.map(\.packet.delivery.ledger)),
        String(reports.reduce(0) { $0 + $1.packet.rows.count }),
      ], by: deadline)
    var ids = ReportIDs(blocks: PostgreSQLArray.numbers(result.bytes(0, 0)))
    if !reports.isEmpty { try copy(reports, &ids) }
  }

  private func copy(
    _ reports: [(packet: OpenedPacket, stream: StreamID, chainIsBroken: Bool)], _ ids: inout ReportIDs
  ) throws(PostgreSQLError) {
    var copied = CopiedBlocks(received: received)
    do {
      for (packet, stream, chainIsBroken) in reports {
        var run = ReportBlock.Run(
          first: 0, count: packet.rows.count, stream: stream, packet: packet.delivery.context.packetID,
          received: receivedTime, chainIsBroken: chainIsBroken, correction: packet.delivery.clockCorrection,
          payloadBytes: packet.payloads.map(\.count))
        var row = 0
        for range in ids.take(run.count) {
          for (report, payload) in zip(range, packet.payloads.dropFirst(row)) {
            copied.add(payload: payload, of: report)
          }
          run.first = range.lowerBound
          let block = try ReportBlock.part(of: packet, run, rows: row..<row + range.count)
          let stored = try block.block.row(block.reports, packer)
          copied.add(stored.head, stored.body)
          row += range.count
        }
      }
    } catch { throw PostgreSQLError(kind: .lost, message: "reports can't be packed: \(error)") }
    try copied.write(connection, by: deadline)
  }
}

/// Ids of reports, ascending.
private struct ReportIDs {
  private let blocks: [Int64]
  private var used = 0

  init(blocks: [Int64]) { self.blocks = blocks }

  /// Ids for a packet's rows: one range, unless another replica took blocks between those of this group.
  mutating func take(_ count: Int) -> [ClosedRange<Int64>] {
    let (bits, size) = (PostgreSQLSchema.blockBits, 1 << Int(PostgreSQLSchema.blockBits))
    var (ranges, left): ([ClosedRange<Int64>], Int) = ([], count)
    while left > 0 {
      let part = min(left, size - used % size)
      let first = blocks[used / size] << bits + Int64(used % size)
      ranges.append(ids: first...first + Int64(part) - 1)
      (used, left) = (used + part, left - part)
    }
    return ranges
  }
}
