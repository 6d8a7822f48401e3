import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite

/// The tables of blocks, payloads and senders of one store, within a transaction.
struct StoreTables {
  enum BlockColumn: String, SQLiteColumn {
    case id, last, rows, textBytes, receivedFirst, receivedLast, createdFirst, createdLast, types, devices, sum
  }
  private enum PayloadColumn: String, SQLiteColumn { case report, sum, payload }
  private enum BodyColumn: String, SQLiteColumn { case body }
  private enum TypesColumn: String, SQLiteColumn { case types }

  let statements: SQLStatements
  var records: RecordTables { RecordTables(statements.driver) }
  var isOnSQLite: Bool { statements.driver.dialect == .sqlite }

  init(_ statements: SQLStatements) { self.statements = statements }
  init(_ driver: any SQLDriver) { statements = SQLStatements(driver: driver) }

  // MARK: Blocks

  func final(_ filter: ReportFilter) -> ReportFilter {
    var filter = filter
    filter.before = min(filter.before ?? .max, statements.horizon)
    return filter
  }

  /// The heads of blocks that have ids of a range, in the order of the ids or the other way.
  /// - Parameter filter: those that can't have what it wants are left out, as far as SQL tells (`BlockHead.mayHave`).
  func heads(
    _ ids: ClosedRange<Int64>, isNewestFirst: Bool, limit: Int, for filter: ReportFilter? = nil
  ) throws -> [BlockHead] {
    let wanted = filter.map(condition)
    return try statements.rows(
      of: BlockColumn.self,
      """
      FROM blocks WHERE id >= coalesce((SELECT max(id) FROM blocks WHERE id <= $1), 0) AND id <= $2 AND last >= $1
      \(wanted?.sql ?? "") ORDER BY id \(isNewestFirst ? "DESC" : "ASC") LIMIT $3
      """, [ids.lowerBound, ids.upperBound, limit] + (wanted?.values ?? [])
    ).map { row in
      guard let head = Self.head(row) else { throw SQLiteError.corrupt("the head of a block is not what was written") }
      return head
    }
  }

  /// Text is looked for as the JSON of a head has it; an empty one is in every text.
  private func condition(_ filter: ReportFilter) -> (sql: String, values: [any SQLConvertible]) {
    let place = isOnSQLite ? "instr" : "strpos"
    let axis = filter.axis == .created ? "created" : "received"
    let types = (6...8).map { "AND \(place)(coalesce(types, $\($0)), $\($0)) > 0" }.joined(separator: " ")
    let texts = [filter.namespace, filter.kind, filter.type, filter.device].map {
      $0.map { JSONValue.string($0).text } ?? ""
    }
    return (
      """
      AND \(axis)_last >= $4 AND \(axis)_first <= $5 \(types)
      AND (coalesce(devices, '~') LIKE '~%' OR \(place)(devices, $9) > 0)
      """, [filter.since ?? .min, filter.until.map { max($0, .min + 1) - 1 } ?? .max] + texts
    )
  }

  private static func head(_ row: SQLRow<BlockColumn>) -> BlockHead? {
    let (id, last, rows) = (row.int64(.id), row.int64(.last), row.int(.rows))
    let received = (row.int64(.receivedFirst), row.int64(.receivedLast))
    let created = (row.int64(.createdFirst), row.int64(.createdLast))
    guard id > 0, last >= id, rows > 0, received.0 <= received.1, created.0 <= created.1 else { return nil }
    return BlockHead(
      id: id, last: last, rows: rows, textBytes: row.int(.textBytes), received: received.0...received.1,
      created: created.0...created.1, types: row.string(.types), devices: row.string(.devices), sum: row.int64(.sum))
  }

  /// nil: there is no such block.
  func body(of block: Int64) throws -> [UInt8]? {
    try statements.first(of: BodyColumn.self, "FROM blocks WHERE id = $1", [block])?.bytes(.body)
  }

  /// - Parameter received: when its report was received, milliseconds since 1970.
  /// - Returns: nil: it is not there, or not what was stored.
  func payload(of report: Int64, received: Int64) throws -> [UInt8]? {
    let from = "FROM payloads WHERE report = $1"
    let day = isOnSQLite ? "" : "AND day = (to_timestamp($2::bigint / 1000.0) AT TIME ZONE 'UTC')::date"
    var found = try statements.first(of: PayloadColumn.self, "\(from) \(day)", [report, received])
    // Payloads that were carried here have the day on which their block begins.
    if found == nil, !isOnSQLite { found = try statements.first(of: PayloadColumn.self, from, [report]) }
    guard let found, Checksum.of(found.bytes(.payload)) == found.int64(.sum) else { return nil }
    return found.bytes(.payload)
  }

  func types() throws -> [TypeName] {
    BlockCounts.types(
      try statements.rows(of: TypesColumn.self, "FROM (SELECT DISTINCT types FROM blocks WHERE types IS NOT NULL) t")
        .map { $0.text(.types) })
  }

  /// The last id of a report; 0: there is no report. On PostgreSQL the last one that is final.
  func newestID() throws -> Int64 {
    guard isOnSQLite else { return max(0, statements.horizon - 1) }
    return try statements.integer("SELECT last FROM blocks ORDER BY id DESC LIMIT 1") ?? 0
  }

  // MARK: Writing blocks

  func insert(_ head: BlockHead, _ body: [UInt8]) throws {
    // Of the partition.
    let (column, value) = isOnSQLite ? ("", "") : ("received, ", "to_timestamp($5::bigint / 1000.0), ")
    try statements.run(
      """
      INSERT INTO blocks (\(column)\(BlockColumn.list), body)
      VALUES (\(value)$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
      """,
      [
        head.id, head.last, head.rows, head.textBytes, head.received.lowerBound, head.received.upperBound,
        head.created.lowerBound, head.created.upperBound, head.types, head.devices, head.sum, body,
      ])
  }

  /// Payloads lie apart, so that blocks are read without them. An empty one needs no row. For SQLite.
  func insert(payloads: [(report: Int64, bytes: [UInt8])]) throws {
    try statements.insert(
      PayloadColumn.self, into: "payloads",
      rows: payloads.filter { !$0.bytes.isEmpty }.map { [$0.report, Checksum.of($0.bytes), $0.bytes] },
      onConflict: "DO NOTHING")
  }

  /// One block in place of those that it was merged from.
  func replace(by head: BlockHead, _ body: [UInt8]) throws {
    try statements.run("DELETE FROM blocks WHERE id BETWEEN $1 AND $2", [head.id, head.last])
    try insert(head, body)
  }

  // MARK: Senders

  private enum StreamColumn: String, SQLiteColumn {
    case id, device, namespace, kind, packets, received, ledger, isWhole
  }

  /// Both copies of a name on SQLite: in the table, and in the index of the same name.
  private var streams: String {
    isOnSQLite
      ? """
      (SELECT n.id, n.device, n.namespace, n.kind, coalesce(s.packets, 1) AS packets, s.received_time AS received, s.ledger,
        s.device = n.device AND s.namespace = n.namespace AND s.kind = n.kind AS is_whole
      FROM streams n INDEXED BY streams_name LEFT JOIN streams s NOT INDEXED ON s.id = n.id) t
      """
      : """
      (SELECT id, device, namespace, kind::text AS kind, packets, (extract(epoch FROM received) * 1000)::bigint AS received,
        ledger, true AS is_whole FROM streams) t
      """
  }

  /// Those of one device, or of all, the ones heard of last first.
  func streams(_ scope: Scope, of device: String?, limit: Int) throws -> [DeviceStream] {
    try statements.rows(
      of: StreamColumn.self,
      """
      FROM \(streams) WHERE packets > 0 \(device == nil ? "" : "AND device = $2")
        AND \(scope.condition(on: "namespace", statements.driver.dialect))
      ORDER BY received DESC, device, namespace, kind LIMIT $1
      """, device.map { [limit, $0] } ?? [limit]
    ).map { row in
      guard row.int(.isWhole) == 1 else { throw SQLiteError.differ("streams", row.int64(.id)) }
      return DeviceStream(
        device: row.text(.device), namespace: row.text(.namespace), kind: kind(row.text(.kind)),
        packets: row.int(.packets), receivedTime: row.int64(.received), ledger: row.string(.ledger))
    }
  }

  private func kind(_ text: String) -> String {
    (RowKind.reports + [.records]).first { !isOnSQLite && $0.tablePrefix == text }?.name ?? text
  }

  func deviceCount() throws -> Int {
    Int(try statements.integer("SELECT count(DISTINCT device) FROM streams WHERE packets > 0") ?? 0)
  }

  /// Whether a device of this id has ever sent a packet. A stream that was brought over on SQLite may have lost its count.
  func hasPackets(of device: String) throws -> Bool {
    let sent = isOnSQLite ? "" : "AND packets > 0"
    return try statements.run("SELECT 1 FROM streams WHERE device = $1 \(sent) LIMIT 1", [device]) > 0
  }

  func has(_ packet: PacketID, of stream: StreamID) throws -> Bool {
    let (kind, id) = isOnSQLite ? ("$3", "$4") : ("$3::\"char\"", "$4::uuid")
    return try statements.run(
      """
      SELECT 1 FROM streams s WHERE device = $1 AND namespace = $2 AND kind = \(kind)
      AND (last_packet = \(id) OR EXISTS (SELECT 1 FROM packets WHERE stream = s.id AND packet = \(id)))
      """,
      [
        stream.device, stream.namespace.text, isOnSQLite ? stream.kind.name : stream.kind.tablePrefix,
        isOnSQLite ? packet.bytes.sqlValue : packet.description.sqlValue,
      ]) > 0
  }

  /// Milliseconds since 1970, by the clock that all replicas share; nil: one process has the database, and its own clock.
  func sharedTime() throws -> Int64? {
    isOnSQLite ? nil : try statements.integer("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
  }

  private enum MarkColumn: String, SQLiteColumn { case id, life }

  func mark() throws -> StoreMark {
    let facts = """
      (SELECT (SELECT value FROM facts WHERE name = 'store_id') AS id, (SELECT value FROM facts WHERE name = 'store_life') AS life) f
      """
    let found = try statements.first(of: MarkColumn.self, "FROM \(isOnSQLite ? facts : "store_mark")")
    return StoreMark(id: found?.int64(.id) ?? 0, life: found?.int64(.life) ?? 0)
  }
}

extension Checksum {
  /// Of a whole text.
  static func of(_ bytes: [UInt8]) -> Int64 {
    var sum = CRC32()
    bytes.withUnsafeBytes { sum.add($0) }
    return Int64(sum.value)
  }
}
