/// A table that `prism-collector migrate --from` carries: how its rows are read of either store, and how they are written.
/// All values are texts, and columns have the names `c0` and on.
struct CarriedTable: Sendable {
  /// Of the command's progress.
  let name: String
  /// The file in the state folder that has it.
  let file: String
  let sqlite: String
  let postgresql: String
  let columns: Int
  /// Reads the rows as the table `u`; rows that are there already stay.
  let insert: String

  private init(
    _ name: String, in file: String = "collector.db", columns: Int, sqlite: String, postgresql: String, insert: String
  ) {
    (self.name, self.file, self.columns, self.insert) = (name, file, columns, insert)
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
      table.name.replacing("_", with: " "), in: file, columns: table.columns.count,
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
    [streams, packets, answers, outputs] + RecordTables.carried.map { CarriedTable($0, in: "collector.db") }
    + FleetSchema.tables.map { CarriedTable($0, in: FleetDatabase.fileName) }

  private static let streams = CarriedTable(
    "streams", columns: 9,
    sqlite: """
      SELECT device, namespace, \(kind), lower(hex(last_packet)), packets, ledger, received_time,
        (SELECT lower(hex(max(packet))) FROM packets p WHERE p.stream = s.id),
        printf('%012x', forgotten_time) || 'ffffffffffffffffffff' FROM streams s
      """,
    postgresql: """
      SELECT device, namespace, kind::text, last_packet::text, packets::text, ledger, \(milliseconds("received")),
        newest::text, greatest(forgotten, (SELECT max(packet::text)::uuid FROM forgotten))::text FROM streams
      """,
    insert: """
      INSERT INTO streams (device, namespace, kind, last_packet, packets, ledger, received, newest, forgotten)
      SELECT c0, c1, c2::"char", nullif(c3, '')::uuid, c4::bigint, c5, \(time("c6")), nullif(c7, '')::uuid, c8::uuid
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
    "answers to packets of records", columns: 6,
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

  /// Reports keep their ids. - Parameter id: of the last one that is carried.
  static func reports(after id: Int64) -> CarriedTable {
    CarriedTable(
      "reports", columns: 12,
      sqlite: """
        SELECT id, received_time, created_time, device, namespace, \(kind), packet, chain_broken, type, report_id, meta,
          hex(payload) FROM report s WHERE id > \(id) ORDER BY id
        """,
      postgresql: """
        SELECT r.id::text, \(milliseconds("r.received")), r.created_time::text, s.device, s.namespace, s.kind::text,
          r.packet::text, r.chain_broken::int::text, r.type, r.report_id, r.meta, encode(r.payload, 'hex')
        FROM whole_reports r JOIN streams s ON s.id = r.stream WHERE r.id > \(id) ORDER BY r.id
        """,
      insert: """
        INSERT INTO reports (received, created_time, stream, packet, id, chain_broken, type, report_id, meta, payload)
        SELECT \(time("c1")), c2::bigint, s.id, c6::uuid, c0::bigint, c7::int::boolean, c8, c9, c10,
          CASE WHEN s.kind = 'p' THEN decode(coalesce(c11, ''), 'hex') END
        FROM u JOIN streams s ON s.device = c3 AND s.namespace = c4 AND s.kind = c5::"char" ORDER BY c0::bigint
        """)
  }
}
