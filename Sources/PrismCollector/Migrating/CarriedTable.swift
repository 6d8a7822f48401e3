import PrismSQL
import PrismSQLite

/// A table that `prism-collector migrate --from` carries: how its rows are read of either store, and how they are written.
/// All values are texts, and columns have the names `c0` and on.
struct CarriedTable: Sendable {
  /// Of the command's progress.
  let name: String
  /// The table in PostgreSQL.
  let target: String
  let file: String
  let sqlite: String
  let postgresql: String
  let columns: Int
  /// Reads the rows as the table `u`; rows that are there already stay.
  let insert: String

  private init(
    _ name: String, target: String? = nil, in file: String = "collector.db", columns: Int, sqlite: String,
    postgresql: String, insert: String
  ) {
    (self.name, self.target, self.file, self.columns, self.insert) = (name, target ?? name, file, columns, insert)
    (self.sqlite, self.postgresql) = (sqlite, postgresql)
  }

  /// A table that both databases have. Bytes are carried in hexadecimal digits.
  private init(_ table: SQLTable, in file: String) {
    let names = table.columns.map(\.name).joined(separator: ", ")
    func list(_ text: (SQLTable.Column) -> String) -> String { table.columns.map(text).joined(separator: ", ") }
    let values = table.columns.enumerated().map { index, column in
      column.kind == .bytes
        ? "decode(c\(index), 'hex')" : "c\(index)::\(column.kind == .identity ? "bigint" : column.kind.rawValue)"
    }
    self.init(
      table.name.replacing("_", with: " "), target: table.name, in: file, columns: table.columns.count,
      sqlite: "SELECT \(list { $0.kind == .bytes ? "hex(\($0.name))" : $0.name }) FROM \(table.name)",
      postgresql:
        "SELECT \(list { $0.kind == .bytes ? "encode(\($0.name), 'hex')" : "\($0.name)::text" }) FROM \(table.name)",
      insert:
        "INSERT INTO \(table.name) (\(names)) SELECT \(values.joined(separator: ", ")) FROM u ON CONFLICT DO NOTHING")
  }

  /// The letter of a stream's kind on PostgreSQL.
  private static let kind = "CASE s.kind WHEN 'meta' THEN 'm' WHEN 'payload' THEN 'p' ELSE '-' END"
  private static let ofStream = "s.device = c0 AND s.namespace = c1 AND s.kind = c2::\"char\""
  private static func milliseconds(_ column: String) -> String {
    "(extract(epoch FROM \(column)) * 1000)::bigint::text"
  }
  private static func time(_ column: String) -> String { "to_timestamp(\(column)::float8 / 1000)" }

  /// In the order in which they are written: streams come before what belongs to them.
  static let all =
    [streams, packets, answers, outputs, deadLetters]
    + RecordTables.carried.map { CarriedTable($0, in: "collector.db") }
    + FleetSchema.tables.map { CarriedTable($0, in: FleetDatabase.fileName) }

  private static let streams = CarriedTable(
    "streams", columns: 10,
    sqlite: """
      SELECT device, namespace, \(kind), lower(hex(last_packet)), packets, ledger, received_time,
        (SELECT lower(hex(max(packet))) FROM packets p WHERE p.stream = s.id),
        printf('%012x', forgotten_time) || 'ffffffffffffffffffff',
        (SELECT printf('%012x', value) || 'ffffffffffffffffffff' FROM facts WHERE name = 'unset_' || s.id) FROM streams s
      """,
    postgresql: """
      SELECT device, namespace, kind::text, last_packet::text, packets::text, ledger, \(milliseconds("received")),
        newest::text, greatest(forgotten, (SELECT max(packet::text)::uuid FROM forgotten))::text, forgotten_unset::text
      FROM streams
      """,
    insert: """
      INSERT INTO streams (device, namespace, kind, last_packet, packets, ledger, received, newest, forgotten, forgotten_unset)
      SELECT c0, c1, c2::"char", nullif(c3, '')::uuid, c4::bigint, c5, \(time("c6")), nullif(c7, '')::uuid, c8::uuid,
        c9::uuid
      FROM u ON CONFLICT DO NOTHING
      """)

  private static let packets = CarriedTable(
    "packets", columns: 4,
    sqlite: """
      SELECT s.device, s.namespace, \(kind), lower(hex(p.packet)) FROM packets p JOIN streams s ON s.id = p.stream
      """,
    postgresql: """
      SELECT s.device, s.namespace, s.kind::text, p.packet::text FROM packets p JOIN streams s ON s.id = p.stream
      """,
    insert: "INSERT INTO packets SELECT c3::uuid, s.id FROM u JOIN streams s ON \(ofStream) ON CONFLICT DO NOTHING")

  private static let answers = CarriedTable(
    "answers to packets of records", target: "record_answers", columns: 6,
    sqlite: """
      SELECT s.device, s.namespace, \(kind), lower(hex(a.packet)), a.answer, a.received_time
      FROM record_answers a JOIN streams s ON s.id = a.stream
      """,
    postgresql: """
      SELECT s.device, s.namespace, s.kind::text, encode(a.packet, 'hex'), a.answer, a.received_time::text
      FROM record_answers a JOIN streams s ON s.id = a.stream
      """,
    insert: """
      INSERT INTO record_answers SELECT s.id, decode(c3, 'hex'), c4, c5::bigint FROM u JOIN streams s ON \(ofStream)
      ON CONFLICT DO NOTHING
      """)

  /// Outputs go on where they were.
  private static let outputs = CarriedTable(
    "outputs", columns: 2,
    sqlite: "SELECT substr(name, 8), value FROM facts WHERE substr(name, 1, 7) = 'output_'",
    postgresql: "SELECT output, cursor::text FROM outputs",
    insert: "INSERT INTO outputs SELECT c0, c1::bigint, now() FROM u ON CONFLICT DO NOTHING")

  /// Behind an output's place: nothing else hands them on.
  private static let deadLetters = CarriedTable(
    "dead letters", target: "output_dead", columns: 6, sqlite: "SELECT \(dead) FROM output_dead",
    postgresql: """
      SELECT output, report::text, cause, time::text, is_requeued::text, is_delivered::text FROM output_dead
      """,
    insert: """
      INSERT INTO output_dead (\(dead)) SELECT c0, c1::bigint, c2, c3::bigint, c4::bigint, c5::bigint FROM u
      ON CONFLICT DO NOTHING
      """)
  private static let dead = "output, report, cause, time, is_requeued, is_delivered"

  /// Each block by what it holds: a source that was used since the last run may have merged some.
  static let blockSums = CarriedTable(
    "block sums", columns: 2, sqlite: "SELECT id, \(sum) FROM blocks ORDER BY id",
    postgresql: "SELECT id::text, \(sum) FROM blocks ORDER BY id", insert: "")
  private static let sum = "last || ' ' || sum"

  /// Reports keep their ids, and their blocks the bytes. - Parameter id: of the last report that is carried.
  static func blocks(after id: Int64) -> CarriedTable {
    let columns = StoreTables.BlockColumn.list
    let numbers = (0..<8).map { "c\($0)::bigint" }.joined(separator: ", ")
    return CarriedTable(
      "blocks", columns: 12,
      sqlite: "SELECT \(columns), hex(body) FROM blocks WHERE id > \(id) ORDER BY id",
      postgresql: """
        SELECT \(columns.split(separator: ",").map { "\($0)::text" }.joined(separator: ", ")), encode(body, 'hex')
        FROM blocks WHERE id > \(id) ORDER BY id
        """,
      insert: """
        INSERT INTO blocks (received, \(columns), body)
        SELECT \(time("c4")), \(numbers), c8, c9, c10::bigint, decode(c11, 'hex') FROM u ORDER BY c0::bigint
        """)
  }

  /// Payloads of reports that are carried. The day is that of their block.
  static let payloads = CarriedTable(
    "payloads", columns: 4,
    sqlite: """
      SELECT p.report, p.sum, hex(p.payload), (SELECT b.received_first FROM blocks b WHERE b.id <= p.report ORDER BY b.id DESC LIMIT 1)
      FROM payloads p ORDER BY p.report
      """,
    postgresql: """
      SELECT report::text, sum::text, encode(payload, 'hex'), \(milliseconds("day::timestamptz")) FROM payloads ORDER BY report
      """,
    insert: """
      INSERT INTO payloads (day, report, sum, payload)
      SELECT (\(time("c3")) AT TIME ZONE 'UTC')::date, c0::bigint, c1::bigint, decode(c2, 'hex') FROM u ON CONFLICT DO NOTHING
      """)
}
