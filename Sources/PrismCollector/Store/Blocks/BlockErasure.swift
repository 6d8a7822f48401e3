import PrismSQL

/// A block from which reports are erased, and the block that takes its place.
struct BlockErasure: Sendable {
  let former: BlockHead
  /// nil: no report of it stays.
  let kept: (head: BlockHead, body: [UInt8])?
  /// Ascending.
  let erased: [Int64]

  /// - Parameter ids: of the reports that are erased. - Returns: nil: they are no reports.
  init?(of ids: [Int64], in block: OpenedBlock, _ head: BlockHead) throws {
    guard !ids.isEmpty else { return nil }
    var builder = BlockBuilder()
    builder.add(block, without: Set(ids))
    (former, kept, erased) = (head, try builder.block?.row(), ids.sorted())
  }
}

extension [ClosedRange<Int64>] {
  /// Adds ids behind the others. Those that follow each other are one range.
  mutating func append(ids: ClosedRange<Int64>) {
    if let last, last.upperBound + 1 == ids.lowerBound {
      self[count - 1] = last.lowerBound...ids.upperBound
    } else {
      append(ids)
    }
  }
}

extension BlockReader {
  /// The next block behind an id that has reports of a filter, without them; nil: there is no such block.
  func erasure(_ filter: ReportFilter, after id: Int64, of tables: StoreTables) throws -> BlockErasure? {
    var (wanted, found): (ReportFilter, BlockErasure?) = (filter, nil)
    wanted.after = id
    try forEachHead(wanted, of: tables) { head in
      guard try !matching([head], filter, of: tables).isEmpty, let block = try open(head, of: tables) else {
        return true
      }
      var erased: [Int64] = []
      _ = block.forEach(filter, filter.metas.map { FieldQuestion($0) }) { report in
        erased.append(report.id)
        return true
      }
      found = try BlockErasure(of: erased, in: block, head)
      return found == nil
    }
    return found
  }
}

extension StoreTables {
  /// One transaction at a time rewrites blocks, of all processes: two would read the same ones, and write blocks that overlap.
  func lockBlocks() throws { try statements.driver.lock(Self.blocksLock, isShared: false) }
  static var blocksLock: String { "blocks" }

  /// Puts what stays in the place of a block, and deletes the payloads and dead letters of what is erased.
  /// - Returns: false: the block is no longer as it was read, and nothing is changed.
  func erase(_ erasure: BlockErasure) throws -> Bool {
    let former = erasure.former
    try lockBlocks()
    guard try heads(former.ids, isNewestFirst: false, limit: 2) == [former] else { return false }
    try statements.run("DELETE FROM blocks WHERE id = $1 AND last = $2", [former.id, former.last])
    if let kept = erasure.kept { try insert(kept.head, kept.body) }
    let erased = Set(erasure.erased)
    // Of the partitions.
    let days = isOnSQLite ? "" : "day BETWEEN \(Self.day("$3")) AND \(Self.day("$4")) AND"
    try delete(erased, of: former.ids, from: "payloads WHERE \(days)", isOnSQLite ? nil : former.received)
    try delete(erased, of: former.ids, from: "output_dead WHERE", nil)
    // No report gets the id of an erased one.
    try statements.run(
      """
      INSERT INTO facts VALUES ('newest_report', $1)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE facts.value < excluded.value
      """, [former.last])
    return true
  }

  private static func day(_ time: String) -> String {
    "(to_timestamp(\(time)::bigint / 1000.0) AT TIME ZONE 'UTC')::date"
  }

  /// Deletes the rows that erased reports have in a table: one statement for rows that follow each other there.
  private func delete(
    _ erased: Set<Int64>, of ids: ClosedRange<Int64>, from table: String, _ times: ClosedRange<Int64>?
  ) throws {
    let others = times.map { [$0.lowerBound, $0.upperBound] } ?? []
    let known = try statements.texts(
      "SELECT DISTINCT report FROM \(table) report BETWEEN $1 AND $2 ORDER BY report",
      [ids.lowerBound, ids.upperBound] + others)
    for rows in known.compactMap({ Int64($0[0]) }).split(whereSeparator: { !erased.contains($0) }) {
      try statements.run(
        "DELETE FROM \(table) report BETWEEN $1 AND $2", [rows[rows.startIndex], rows[rows.endIndex - 1]] + others)
    }
  }

  /// Deletes the records of a device, its streams with the ids of their packets, and its day. - Returns: how many records it had.
  func erase(device: String) throws -> Int {
    let records = try statements.integer("SELECT count(*) FROM records WHERE device = $1", [device]) ?? 0
    for table in ["record_answers", "packets"] {
      try statements.run("DELETE FROM \(table) WHERE stream IN (SELECT id FROM streams WHERE device = $1)", [device])
    }
    for table in ["records", "deleted_records", "record_tables", "streams"] {
      try statements.run("DELETE FROM \(table) WHERE device = $1", [device])
    }
    for fact in Quotas.facts(of: device) { try statements.run("DELETE FROM facts WHERE name = $1", [fact]) }
    return Int(records)
  }
}

extension ReadStore {
  func eraseNext(_ filter: ReportFilter, after id: Int64) async throws(StoreFailure) -> ErasedBlock? {
    for _ in 0..<Self.erasingTries {
      guard let found = try await readers.reports.erasure(filter, after: id) else { return nil }
      // It may be merged meanwhile.
      guard try await erasing({ try $0.erase(found) }) else { continue }
      let received = found.former.received
      return ErasedBlock(
        ids: found.former.ids, reports: found.erased.count,
        days: [received.lowerBound / 86_400_000, received.upperBound / 86_400_000])
    }
    throw .unavailable("the blocks behind the report \(id) change each time they are looked at, or overlap")
  }

  private static var erasingTries: Int { 1000 }

  func erase(device: String) async throws(StoreFailure) -> Int { try await erasing { try $0.erase(device: device) } }

  private func erasing<Value: Sendable>(
    _ body: @Sendable (StoreTables) throws -> Value
  ) async throws(StoreFailure) -> Value {
    try await changing("reports can't be erased", "reports are erased again", body)
  }
}
