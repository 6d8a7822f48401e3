import PrismProtocol

/// Takes one group of packets in one transaction (docs/collector.md, "PostgreSQL").
struct GroupTransaction {
  private static let take =
    """
    SELECT outcome, sids, blocks, received, s.id, s.life FROM prism_take_group($1, $2, $3, $4, $5, $6, $7, $8, $9), store_mark s
    """
  private static let copy = """
    COPY reports (received, created_time, stream, packet, id, chain_broken, type, report_id, context, meta, payload)
    FROM STDIN (FORMAT binary)
    """
  private static let chunkBytes = 262_144

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
  /// Those of the replica; after a failure the caller drops what this group noted.
  var noted: PostgreSQLNoted
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

  private mutating func store(_ decision: Decision) throws(PostgreSQLError) {
    noted.begin(received: decision.received)
    let references = group.indices.map { index in
      isCopied(index, decision) ? noted.contexts.references(of: group[index].packet) : PostgreSQLContexts.References()
    }
    try noted.contexts.write(connection, by: deadline)
    try connection.beginCopy(Self.copy, by: deadline)
    var rows = CopyRows()
    var next = ReportIDs(blocks: decision.blocks)
    for (index, submission) in group.enumerated() {
      guard isCopied(index, decision) else { continue }
      let (packet, letter) = (submission.packet, decision.letters[index])
      var references = references[index]
      let id = packet.delivery.context.packetID.bytes
      for (number, row) in packet.rows.enumerated() {
        rows.begin(columns: 11)
        rows.add(decision.received)
        rows.add(row.createdTime)
        rows.add(decision.streams[index])
        rows.add(id)
        rows.add(next.take())
        rows.add(letter == UInt8(ascii: "b"))
        rows.add(packet.bytes[row.type])
        noted.types.note(packet.bytes[row.type], packet.delivery.context.namespace)
        rows.add(packet.bytes[row.reportID])
        let (context, replacedBytes) = references.next(row, number)
        rows.add(context)
        if context == nil, row.common != nil {
          rows.add(packet.meta(row))
        } else {
          rows.add(packet.bytes[row.own].dropLast(replacedBytes))
        }
        if let payload = packet.payload(number) { rows.add(payload) } else { rows.addNull() }
        if rows.count >= Self.chunkBytes { try connection.copy(&rows, by: deadline) }
      }
    }
    rows.end()
    try connection.copy(&rows, by: deadline)
    try connection.endCopy(by: deadline)
    try noted.types.write(connection, by: deadline)
  }

  /// Whether the packet's reports are new.
  private func isCopied(_ index: Int, _ decision: Decision) -> Bool {
    let letter = decision.letters[index]
    return (letter == UInt8(ascii: "s") || letter == UInt8(ascii: "b")) && group[index].packet.records == nil
  }
}

/// Ids of reports, block by block, ascending.
private struct ReportIDs {
  private let blocks: [Int64]
  private var used = 0

  init(blocks: [Int64]) { self.blocks = blocks }

  mutating func take() -> Int64 {
    defer { used += 1 }
    let size = 1 << Int(PostgreSQLSchema.blockBits)
    return blocks[used / size] << PostgreSQLSchema.blockBits + Int64(used % size)
  }
}

extension PacketOutcome {
  fileprivate var isStored: Bool { if case .stored = self { true } else { false } }
}
