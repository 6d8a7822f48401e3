import PrismPacket
import PrismProtocol

/// Takes one group of packets in one transaction (docs/collector.md, "PostgreSQL").
struct GroupTransaction {
  private static let take =
    """
    SELECT outcome, sids, blocks, received, s.id, s.life FROM prism_take_group($1, $2, $3, $4, $5, $6, $7, $8, $9), store_mark s
    """
  /// The database's decision on each packet.
  private struct Decision {
    /// A letter a packet.
    var letters: [UInt8]
    var streams: [Int64]
    /// Of ids.
    var blocks: [Int64]
    /// Microseconds since 2000.
    var received: Int64
  }

  let connection: PostgreSQLConnection
  let group: [PacketSubmission]
  let deadline: Deadline
  let packer: RestPacker
  /// Of the database that decided.
  private(set) var mark: StoreMark?

  /// - Returns: an outcome a packet, once all is at rest.
  mutating func run() throws(PostgreSQLError) -> [PacketOutcome] {
    try connection.transaction(by: deadline) { () throws(PostgreSQLError) in
      let decision = try decide()
      if !decision.blocks.isEmpty { try store(decision) }
      var outcomes = decision.letters.map { Self.outcome($0) }
      try applyRecords(decision, &outcomes)
      return outcomes
    }
  }

  private func applyRecords(_ decision: Decision, _ outcomes: inout [PacketOutcome]) throws(PostgreSQLError) {
    let tables = RecordTables(PostgreSQLDriver(connection, by: deadline))
    let now = decision.received / 1000 + CopyRows.epochSeconds * 1000
    for (index, submission) in group.enumerated() where outcomes[index].isStored {
      guard let operations = submission.packet.records else { continue }
      let context = submission.packet.delivery.context
      var applied = try PostgreSQLError.only {
        try tables.apply(
          operations, context.packetID, from: StreamID(context), number: decision.streams[index], now: now)
      }
      applied.isChainBroken = outcomes[index] == .stored(chainIsBroken: true)
      outcomes[index] = .applied(applied)
    }
    // Of this group, too.
    for (index, submission) in group.enumerated() where outcomes[index] == .duplicate {
      guard let operations = submission.packet.records else { continue }
      let context = submission.packet.delivery.context
      let answer = try PostgreSQLError.only {
        try tables.answer(
          to: context.packetID, operations, from: StreamID(context), number: decision.streams[index])
      }
      outcomes[index] = .applied(answer)
    }
  }

  private static func outcome(_ letter: UInt8) -> PacketOutcome {
    switch letter {
    case UInt8(ascii: "s"): .stored(chainIsBroken: false)
    case UInt8(ascii: "b"): .stored(chainIsBroken: true)
    case UInt8(ascii: "d"): .duplicate
    case UInt8(ascii: "o"): .tooOld
    default: .predecessorMissing
    }
  }

  private mutating func decide() throws(PostgreSQLError) -> Decision {
    let deliveries = group.map(\.packet.delivery)
    let contexts = deliveries.map(\.context)
    let result = try connection.query(
      Self.take,
      [
        PostgreSQLArray.text(contexts.map(\.deviceID)), PostgreSQLArray.text(contexts.map(\.namespace.text)),
        PostgreSQLArray.text(contexts.map(\.kind.tablePrefix)),
        PostgreSQLArray.text(contexts.map(\.packetID.description)),
        PostgreSQLArray.text(deliveries.map { $0.dependsOn?.description }),
        PostgreSQLArray.text(deliveries.map(\.ledger)),
        PostgreSQLArray.text(group.map { $0.isLate ? "t" : "f" }),
        PostgreSQLArray.text(group.map { String($0.packet.records == nil ? $0.packet.rows.count : 0) }),
        PostgreSQLArray.text(group.map { $0.needsPredecessor ? "t" : "f" }),
      ], by: deadline)
    mark = StoreMark(id: result.int(0, 4), life: result.int(0, 5))
    let letters = Array(result.bytes(0, 0))
    let decision = Decision(
      letters: letters, streams: PostgreSQLArray.numbers(result.bytes(0, 1)),
      blocks: PostgreSQLArray.numbers(result.bytes(0, 2)),
      received: result.int(0, 3))
    guard letters.count == group.count, decision.streams.count == group.count else {
      throw PostgreSQLError(kind: .lost, message: "prism_take_group answered for another number of packets")
    }
    return decision
  }

  private func store(_ decision: Decision) throws(PostgreSQLError) {
    var copied = CopiedBlocks(received: decision.received)
    var ids = ReportIDs(blocks: decision.blocks)
    do {
      for (index, submission) in group.enumerated() where isCopied(index, decision) {
        let packet = submission.packet
        let context = packet.delivery.context
        var run = ReportBlock.Run(
          first: 0, count: packet.rows.count, stream: StreamID(context), packet: context.packetID,
          received: decision.received / 1000 + CopyRows.epochSeconds * 1000,
          chainIsBroken: decision.letters[index] == UInt8(ascii: "b"), correction: packet.delivery.clockCorrection,
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

  /// Whether the packet's reports are new.
  private func isCopied(_ index: Int, _ decision: Decision) -> Bool {
    let letter = decision.letters[index]
    return (letter == UInt8(ascii: "s") || letter == UInt8(ascii: "b")) && group[index].packet.records == nil
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
      let last = first + Int64(part) - 1
      if let former = ranges.last, former.upperBound + 1 == first {
        ranges[ranges.count - 1] = former.lowerBound...last
      } else {
        ranges.append(first...last)
      }
      (used, left) = (used + part, left - part)
    }
    return ranges
  }
}

extension PacketOutcome {
  fileprivate var isStored: Bool { if case .stored = self { true } else { false } }
}
