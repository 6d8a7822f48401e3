import PrismPacket
import PrismSQL
import PrismSQLite

/// Blocks and payloads in the form of COPY.
struct CopiedBlocks {
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

  static let copyBlocks =
    "COPY blocks (received, \(StoreTables.BlockColumn.list), body) FROM STDIN (FORMAT binary)"
  static let copyPayloads = "COPY payloads (day, report, sum, payload) FROM STDIN (FORMAT binary)"

  /// Microseconds since 2000.
  let received: Int64
  private(set) var blocks = CopyRows()
  private(set) var payloads = CopyRows()
  private(set) var hasPayloads = false

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
