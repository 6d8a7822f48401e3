import PrismSQL

/// One step of the databases' schema, each to the version behind it. PostgreSQL has all tables in one schema, and takes each
/// step; of SQLite's files each takes its own.
struct SchemaStep: Sendable {
  enum File { case packets, fleet }

  /// In the order of their publication, since 0.2.0: further ones come at the end.
  private static let all = [
    SchemaStep(.fleet, [FleetSchema.deviceFacts], "ALTER TABLE tokens ADD COLUMN tags text;\n"),
    SchemaStep(.fleet, FleetSchema.noticeTables, FleetSchema.noticeIndexes),
    SchemaStep(.fleet, FleetSchema.jobTables, FleetSchema.jobIndexes),
    SchemaStep(.fleet, FleetSchema.triggerTables),
    // A replica of the version before goes on writing: it names no new column.
    SchemaStep(
      .packets, [],
      """
      ALTER TABLE records ADD COLUMN reported text;
      ALTER TABLE records ADD COLUMN fetched_time bigint NOT NULL DEFAULT 0;
      ALTER TABLE record_tables ADD COLUMN fetched_seq bigint NOT NULL DEFAULT 0;
      ALTER TABLE output_dead ADD COLUMN is_delivered bigint NOT NULL DEFAULT 0;

      """),
  ]

  static let postgreSQL = all.map { $0.tables.map(\.postgreSQL).joined() + $0.sql }
  static func of(_ file: File) -> [SchemaStep] { all.filter { $0.file == file } }

  private let file: File
  private let tables: [SQLTable]
  private let sql: String

  var sqlite: String { tables.map(\.sqlite).joined() + sql }

  private init(_ file: File, _ tables: [SQLTable] = [], _ sql: String = "") {
    (self.file, self.tables, self.sql) = (file, tables, sql)
  }
}
