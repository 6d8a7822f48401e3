import PrismBase
import PrismPacket
import PrismProtocol
import PrismSQL

/// Inserts reports into a PostgreSQL database of people who ask in SQL: a table a namespace, which it makes when it is missing
/// (docs/postgresql.md). A report that comes again, also from another collector, has the key of its row, and is there once. The
/// key is its device, its packet and the digest of its meta and payload, and of its place there if it has no id.
actor PostgreSQLOutput: ReportOutput {
  struct Options: Sendable, Equatable {
    var uri: String
    var schema = "prism"
    var passwordFile: String?
    var timeout: Duration = .seconds(30)
  }

  private let executor = DispatchQueueExecutor(label: "prism.collector.postgresql")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let options: Options
  private var connection: PostgreSQLConnection?

  init(_ options: Options) { self.options = options }

  func close() { connection = nil }

  /// A page is one transaction, or, where the database can't hold some of its reports, one for each half and so on.
  func deliver(_ reports: [StoredReport]) throws(OutputFailure) -> [RefusedReport] {
    let target: PostgreSQLTarget
    do throws(PostgreSQLTarget.Fault) {
      target = try PostgreSQLTarget(uri: options.uri, passwordFile: options.passwordFile)
    } catch { throw OutputFailure("postgresql: \(error)") }
    do throws(PostgreSQLError) {
      let deadline = Deadline(options.timeout)
      let connection = if let connection { connection } else { try PostgreSQLConnection(target, by: deadline) }
      self.connection = connection
      return try insert(reports[...], connection, deadline)
    } catch {
      connection = nil
      throw OutputFailure("\(error)")
    }
  }

  private func insert(
    _ reports: ArraySlice<StoredReport>, _ connection: PostgreSQLConnection, _ deadline: Deadline,
    makesTables: Bool = true
  ) throws(PostgreSQLError) -> [RefusedReport] {
    do throws(PostgreSQLError) {
      return try connection.transaction(by: deadline) { () throws(PostgreSQLError) in
        var refused: [RefusedReport] = []
        for (namespace, rows) in Dictionary(grouping: reports, by: \.namespace).sorted(by: { $0.key < $1.key }) {
          let table = PostgreSQLTable(schema: options.schema, namespace: namespace)
          let columns = try PostgreSQLError.only { try PostgreSQLTable.columns(of: rows) }
          guard try connection.query(table.insert, columns, by: deadline).count < rows.count else { continue }
          let lacking = try connection.query(table.lacking, PostgreSQLTable.keys.map { columns[$0] }, by: deadline)
          refused += (0..<lacking.count).map { row in
            RefusedReport(
              id: lacking.int(row, 0),
              cause: "PostgreSQL: another row has a unique key of the report, or a trigger left it out")
          }
        }
        return refused
      }
    } catch {
      if error.isTableMissing, makesTables {
        for namespace in Set(reports.map(\.namespace)).sorted() {
          try connection.execute(
            PostgreSQLTable(schema: options.schema, namespace: namespace).creation, by: deadline)
        }
        return try insert(reports, connection, deadline, makesTables: false)
      }
      guard error.isRejection, let first = reports.first else { throw error }
      guard reports.count > 1 else { return [RefusedReport(id: first.id, cause: "\(error)")] }
      let middle = reports.startIndex + reports.count / 2
      return try insert(reports[..<middle], connection, deadline) + insert(reports[middle...], connection, deadline)
    }
  }
}

/// A namespace's table in PostgreSQL, and rows for it. `schema` and `namespace` have no sign that ends a quoted name.
private struct PostgreSQLTable {
  let schema: String
  let namespace: String

  private var name: String { "\"\(schema)\".\"\(table)\"" }
  /// PostgreSQL cuts names at 63 bytes: a long one ends with its digest, so that two namespaces are two tables.
  private var table: String {
    guard namespace.utf8.count > 54 else { return namespace }
    let digest = Hex.encode(((try? Hashing.sha256(Array(namespace.utf8))) ?? []).prefix(6))
    return namespace.cut(atBytes: 41) + "." + digest
  }

  /// A device's clock may be outside the years that everybody's tools read. All collectors take rows in one order, so that no two
  /// wait for each other.
  var insert: String {
    """
    INSERT INTO \(name)
      (id, device, kind, type, report_id, created, received, packet_id, chain_broken, payload, meta, digest)
    SELECT id, device, kind, type, report_id,
      CASE WHEN created BETWEEN -62135596800000 AND 253402300799999 THEN to_timestamp(created / 1000.0) END,
      to_timestamp(received / 1000.0), packet_id, chain_broken, payload, meta::json, digest
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::text[],
      $9::boolean[], $10::bytea[], $11::text[], $12::bytea[])
      AS page (id, device, kind, type, report_id, created, received, packet_id, chain_broken, payload, meta, digest)
    ORDER BY device, packet_id, digest ON CONFLICT DO NOTHING RETURNING id
    """
  }

  /// Of `columns`, the number and those by which a report is its row.
  static let keys = [0, 1, 7, 11]

  /// The reports of a page that are no rows, though the database refused no report.
  var lacking: String {
    """
    SELECT id FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bytea[]) AS page (id, device, packet_id, digest)
    WHERE NOT EXISTS (SELECT 1 FROM \(name) known WHERE known.device = page.device
      AND known.packet_id = page.packet_id AND known.digest = page.digest)
    """
  }

  /// The names of its indexes have a point, which no namespace has: PostgreSQL's own `shop_pkey` may be another namespace's table.
  var creation: String {
    """
    CREATE SCHEMA IF NOT EXISTS "\(schema)";
    CREATE TABLE IF NOT EXISTS \(name) (id bigint NOT NULL, device text NOT NULL, kind text NOT NULL, type text NOT NULL,
      report_id text NOT NULL, created timestamptz, received timestamptz NOT NULL, packet_id text NOT NULL,
      chain_broken boolean NOT NULL, payload bytea, meta json, digest bytea NOT NULL,
      CONSTRAINT "\(table).key" PRIMARY KEY (device, packet_id, digest));
    CREATE INDEX IF NOT EXISTS "\(table).created" ON \(name) (type, created)
    """
  }

  /// In the order of `insert`.
  static func columns(of rows: [StoredReport]) throws -> [String] {
    [
      PostgreSQLArray.text(rows.map { "\($0.id)" }), PostgreSQLArray.text(rows.map(\.device)),
      PostgreSQLArray.text(rows.map(\.kind)), PostgreSQLArray.text(rows.map(\.type)),
      PostgreSQLArray.text(rows.map(\.reportID)), PostgreSQLArray.text(rows.map { $0.createdTime.map { "\($0)" } }),
      PostgreSQLArray.text(rows.map { "\($0.receivedTime)" }), PostgreSQLArray.text(rows.map(\.packetID)),
      PostgreSQLArray.text(rows.map { $0.chainIsBroken ? "t" : "f" }),
      PostgreSQLArray.text(rows.map { $0.payload.map { "\\x" + Hex.encode($0) } }),
      PostgreSQLArray.text(rows.map { String(decoding: $0.meta, as: UTF8.self) }),
      PostgreSQLArray.text(try rows.map { "\\x" + Hex.encode(try digest(of: $0)) }),
    ]
  }

  /// A part of a report is not the report: equal ones that were sent twice are two rows.
  private static func digest(of report: StoredReport) throws -> [UInt8] {
    try Hashing.sha256(Array("\(report.place) \(report.meta.count) ".utf8) + report.meta + (report.payload ?? []))
  }
}
