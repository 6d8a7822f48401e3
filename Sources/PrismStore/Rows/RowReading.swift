import CDeflate
import PrismProtocol

// Reading rows to be sent: each is checked against its checksum, and its context against its own.
extension ReportStore {
  /// Types that a claim may take, as the rows have them.
  struct TypeChoice {
    private let numbers: Set<Int64>
    private let takesListed: Bool

    init(_ filter: Claim.TypeFilter, _ state: StoreState) {
      switch filter {
      case .all: (numbers, takesListed) = ([], false)
      case .only(let types): (numbers, takesListed) = (Set(types.compactMap(state.number(of:))), true)
      case .except(let types): (numbers, takesListed) = (Set(types.compactMap(state.number(of:))), false)
      }
    }

    func contains(_ type: Int64) -> Bool { numbers.contains(type) == takesListed }
  }

  /// What `row` needs to be rendered; nil when its type or context is not what was stored.
  func rendering(of row: StoredRow, _ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) -> RowRendering? {
    guard let type = state.types[row.type], let namespace = state.namespaces[queue.namespace],
      let context = row.context <= 0 ? [] : try context(row.context, namespace: queue.namespace, database)?.members
    else { return nil }
    return RowRendering(
      context: context,
      splicing: MetaSplicing(
        monitorType: MetaSplicing.monitorType(type, in: namespace).utf8, isBusiness: namespace.isBusiness,
        context: context, epoch: epochBytes))
  }

  /// A stored context; nil when it is not there or fails its checksum.
  private func context(
    _ id: Int64, namespace: Int, _ database: StoreDatabase
  ) throws(SQLiteError) -> ContextCache.Stored? {
    if let stored = contexts.stored(id) { return stored }
    let read = try database.statement(.readContext)
    read.bind(1, id)
    defer { read.reset() }
    guard try read.step(), read.int(0) == namespace else { return nil }
    let stored = ContextCache.Stored(members: read.bytes(2), owner: RowOwner(stored: read.int64(3)))
    guard read.int64(1) == Self.checksum(ofContext: id, namespace: namespace, stored) else { return nil }
    contexts.remember(stored, of: id)
    return stored
  }

  /// - Parameter contextColumn: of a row. - Returns: nil where its context is not what was stored.
  func owner(
    _ contextColumn: Int64, namespace: Int, _ database: StoreDatabase
  ) throws(SQLiteError) -> RowOwner? {
    if contextColumn <= 0 { return RowOwner(contextColumn: contextColumn) }
    if let owner = contexts.owner(of: contextColumn) { return owner }
    return try context(contextColumn, namespace: namespace, database)?.owner
  }

  static func checksum(ofContext id: Int64, namespace: Int, _ context: ContextCache.Stored) -> Int64 {
    let numbers: [3 of Int64] = [id, Int64(namespace), context.owner.number]
    // Versions before 3 knew no owner.
    let count = context.owner == .unknown ? 16 : 24
    let crc = withUnsafeBytes(of: numbers) { libdeflate_crc32(0, $0.baseAddress, count) }
    let members = context.members
    return Int64(members.isEmpty ? crc : libdeflate_crc32(crc, members, members.count))
  }

  /// Rows of one queue that are read for a packet.
  struct Reading {
    var builder: PacketBuilder
    /// Rows that are not what was stored, ascending.
    var damaged = IDRuns()
    /// The rendering of the row before, which most often is that of the next one too.
    var rendering: (type: Int64, context: Int64, value: RowRendering)?
  }

  /// Takes the row that `statement` stands on. false: the packet is closed, and the row not in it.
  func take(
    _ statement: SQLiteStatement, _ queue: QueueID, into reading: inout Reading, _ database: StoreDatabase
  ) throws(SQLiteError) -> Bool {
    try take(
      StoredRow(statement, hasPayload: queue.kind == .payload), statement, queue, into: &reading, database)
  }

  /// - Parameter row: what `statement` stands on.
  func take(
    _ row: StoredRow, _ statement: SQLiteStatement, _ queue: QueueID, into reading: inout Reading,
    _ database: StoreDatabase
  ) throws(SQLiteError) -> Bool {
    if reading.rendering?.type != row.type || reading.rendering?.context != row.context {
      reading.rendering = try rendering(of: row, queue, database).map { (row.type, row.context, $0) }
    }
    guard StoredRow.isWhole(row, statement), let rendering = reading.rendering?.value else {
      try reading.damaged.append(read: row.id)
      return true
    }
    return try reading.builder.add(row, rendering)
  }

  /// Reads exactly `members`; those that are missing or damaged are in `damaged`.
  func read(_ members: IDRuns, of queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) -> Reading {
    var reading = Reading(
      builder: .unlimited(metaBytesExpected: state[queue].metaBytesExpected(of: members.count, kind: queue.kind)))
    let read = try database.statement(.readRange(queue))
    for run in members.runs {
      read.bind(1, run.first)
      read.bind(2, run.last)
      try read.forEachRow { (row) throws(SQLiteError) in _ = try take(row, queue, into: &reading, database) }
    }
    return reading
  }
}
