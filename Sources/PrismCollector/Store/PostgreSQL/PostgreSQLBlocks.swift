import PrismBase
import PrismPacket
import PrismProtocol

/// The tables `blocks` and `payloads` of a database on PostgreSQL, on one connection.
struct PostgreSQLBlocks: BlockSource {
  /// `received` is when the first report came, for the partition; the rest is as in `collector.db`. The body is compressed
  /// already.
  static let schema = """
    CREATE TABLE blocks (received timestamptz NOT NULL, id bigint NOT NULL, last bigint NOT NULL, rows bigint NOT NULL,
      text_bytes bigint NOT NULL, received_first bigint NOT NULL, received_last bigint NOT NULL,
      created_first bigint NOT NULL, created_last bigint NOT NULL, types text COLLATE "C", devices text COLLATE "C",
      sum bigint NOT NULL, body bytea NOT NULL) PARTITION BY RANGE (received);
    ALTER TABLE blocks ALTER COLUMN body SET STORAGE EXTERNAL;
    CREATE INDEX blocks_id ON blocks (id);
    CREATE TABLE payloads (day date, report bigint, sum bigint NOT NULL, payload bytea NOT NULL, PRIMARY KEY (day, report))
      PARTITION BY RANGE (day);

    """
  static let columns =
    "id, last, rows, text_bytes, received_first, received_last, created_first, created_last, types, devices, sum"

  let connection: PostgreSQLConnection
  let deadline: Deadline

  /// Ids below it are final: an open transaction may still fill later ones. Ask before a snapshot.
  func horizon() throws(PostgreSQLError) -> Int64 {
    try connection.query("SELECT prism_horizon()", by: deadline).int(0, 0)
  }

  /// The part of a filter that is final. Ask before a snapshot.
  func final(_ filter: ReportFilter) throws(PostgreSQLError) -> ReportFilter {
    var filter = filter
    filter.before = min(filter.before ?? .max, try horizon())
    return filter
  }

  func snapshot<Result>(_ body: () throws(PostgreSQLError) -> Result) throws(PostgreSQLError) -> Result {
    if connection.isInTransaction { return try body() }
    return try connection.transaction("ISOLATION LEVEL REPEATABLE READ, READ ONLY", by: deadline, body)
  }

  func heads(_ ids: ClosedRange<Int64>, isNewestFirst: Bool, limit: Int) throws(PostgreSQLError) -> [BlockHead] {
    let found = try connection.query(
      """
      SELECT \(Self.columns) FROM blocks WHERE id >= coalesce((SELECT max(id) FROM blocks WHERE id <= $1::bigint), 0)
        AND id <= $2::bigint AND last >= $1::bigint ORDER BY id \(isNewestFirst ? "DESC" : "ASC") LIMIT \(limit)
      """, [String(ids.lowerBound), String(ids.upperBound)], by: deadline)
    return (0..<found.count).map { row in
      BlockHead(
        id: found.int(row, 0), last: found.int(row, 1), rows: Int(found.int(row, 2)),
        textBytes: Int(found.int(row, 3)), received: found.int(row, 4)...max(found.int(row, 4), found.int(row, 5)),
        created: found.int(row, 6)...max(found.int(row, 6), found.int(row, 7)),
        types: found.isNull(row, 8) ? nil : found.text(row, 8),
        devices: found.isNull(row, 9) ? nil : found.text(row, 9), sum: found.int(row, 10))
    }
  }

  func body(of block: Int64) throws(PostgreSQLError) -> [UInt8]? {
    let found = try connection.query("SELECT body FROM blocks WHERE id = $1", [String(block)], by: deadline)
    return found.count == 1 ? Array(found.bytes(0, 0)) : nil
  }

  func payload(of report: Int64, received: Int64) throws(PostgreSQLError) -> [UInt8]? {
    let found = try connection.query(
      """
      SELECT sum, payload FROM payloads WHERE report = $1
        AND day = (to_timestamp($2::bigint / 1000.0) AT TIME ZONE 'UTC')::date
      """, [String(report), String(received)], by: deadline)
    guard found.count == 1 else { return nil }
    let payload = Array(found.bytes(0, 1))
    return Checksum.of(payload) == found.int(0, 0) ? payload : nil
  }

  func types() throws(PostgreSQLError) -> [TypeName] {
    let found = try connection.query("SELECT DISTINCT types FROM blocks WHERE types IS NOT NULL", by: deadline)
    return BlockNames.types((0..<found.count).map { found.text($0, 0) })
  }

  /// One block in place of those that it was merged from. Within a transaction that holds the lock of the upkeep.
  func replace(by head: BlockHead, _ body: [UInt8]) throws(PostgreSQLError) {
    _ = try connection.query(
      "DELETE FROM blocks WHERE id BETWEEN $1 AND $2", [String(head.id), String(head.last)], by: deadline)
    _ = try connection.query(
      """
      INSERT INTO blocks (received, \(Self.columns), body) VALUES (to_timestamp($5::bigint / 1000.0), $1, $2, $3, $4, $5::bigint,
        $6, $7, $8, $9, $10, $11, decode($12, 'hex'))
      """,
      [head.id, head.last, Int64(head.rows), Int64(head.textBytes), head.received.lowerBound, head.received.upperBound]
        .map { String($0) } + [head.created.lowerBound, head.created.upperBound].map { String($0) }
        + [head.types, head.devices, String(head.sum), Hex.encode(body)], by: deadline)
  }
}

/// Blocks and payloads in the form of COPY.
struct CopiedBlocks {
  static let copyBlocks =
    "COPY blocks (received, \(PostgreSQLBlocks.columns), body) FROM STDIN (FORMAT binary)"
  static let copyPayloads = "COPY payloads (day, report, sum, payload) FROM STDIN (FORMAT binary)"

  /// Microseconds since 2000.
  let received: Int64
  private(set) var blocks = CopyRows()
  private(set) var payloads = CopyRows()
  private(set) var hasPayloads = false

  init(received: Int64) { self.received = received }

  mutating func add(_ head: BlockHead, _ body: [UInt8]) {
    blocks.begin(columns: 13)
    for number in [
      received, head.id, head.last, Int64(head.rows), Int64(head.textBytes), head.received.lowerBound,
      head.received.upperBound, head.created.lowerBound, head.created.upperBound,
    ] {
      blocks.add(number)
    }
    for names in [head.types, head.devices] { if let names { blocks.add(Array(names.utf8)) } else { blocks.addNull() } }
    blocks.add(head.sum)
    blocks.add(body)
  }

  /// An empty one needs no row.
  mutating func add(payload: [UInt8], of report: Int64) {
    guard !payload.isEmpty else { return }
    hasPayloads = true
    payloads.begin(columns: 4)
    payloads.add(day: Int32(received / 86_400_000_000))
    payloads.add(report)
    payloads.add(Checksum.of(payload))
    payloads.add(payload)
  }

  /// Within the transaction of the group.
  mutating func write(_ connection: PostgreSQLConnection, by deadline: Deadline) throws(PostgreSQLError) {
    blocks.end()
    try connection.copy(Self.copyBlocks, &blocks, by: deadline)
    guard hasPayloads else { return }
    payloads.end()
    try connection.copy(Self.copyPayloads, &payloads, by: deadline)
  }
}
