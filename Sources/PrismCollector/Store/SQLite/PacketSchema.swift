import PrismProtocol
import PrismSQLite

/// The tables of `collector.db`: who sent what, each packet once, in rows; the reports themselves in blocks.
enum PacketSchema {
  static let version = firstVersion + Int64(steps.count)
  /// The one of 0.2.0.
  static let firstVersion: Int64 = 6
  private static let steps = SchemaStep.of(.packets)
  static let pageBytes = 8192

  static let sql = """
    CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE streams (
      id INTEGER PRIMARY KEY, device TEXT NOT NULL, namespace TEXT NOT NULL, kind TEXT NOT NULL, last_packet BLOB,
      packets INTEGER NOT NULL, ledger TEXT, received_time INTEGER NOT NULL, forgotten_time INTEGER);
    CREATE UNIQUE INDEX streams_name ON streams (device, namespace, kind);
    CREATE TABLE packets (
      id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, packet BLOB NOT NULL, number INTEGER NOT NULL, day INTEGER NOT NULL);
    CREATE UNIQUE INDEX packets_name ON packets (stream, packet);
    CREATE TABLE days (day INTEGER PRIMARY KEY, first_report INTEGER NOT NULL);
    CREATE TABLE imports (
      file TEXT PRIMARY KEY, cursor INTEGER NOT NULL, saved INTEGER NOT NULL, lost INTEGER NOT NULL, is_done INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE blocks (id INTEGER PRIMARY KEY, last INTEGER NOT NULL, rows INTEGER NOT NULL, text_bytes INTEGER NOT NULL,
      received_first INTEGER NOT NULL, received_last INTEGER NOT NULL, created_first INTEGER NOT NULL,
      created_last INTEGER NOT NULL, types TEXT, devices TEXT, sum INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE TABLE payloads (report INTEGER PRIMARY KEY, sum INTEGER NOT NULL, payload BLOB NOT NULL);
    -- A second time, so that a damaged header is not taken for a newer program's.
    INSERT INTO facts VALUES ('version', \(version));
    \(RecordTables.sqlite)
    \(StoreMark.newInSQLite)
    CREATE TABLE output_dead (output TEXT, report INTEGER, cause TEXT NOT NULL, time INTEGER NOT NULL,
      is_requeued INTEGER NOT NULL DEFAULT 0, is_delivered INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (output, report)) WITHOUT ROWID;
    PRAGMA user_version = \(version);
    """

  /// Makes the tables of a new file, or brings those of an earlier version to this one, in one transaction.
  static func prepare(_ connection: SQLiteConnection) throws(SQLiteError) {
    let isNew = try connection.firstInt("SELECT count(*) FROM sqlite_schema") == 0
    let found = Int64(try connection.version())
    guard isNew || firstVersion..<version ~= found else { return }
    try connection.transaction { () throws(SQLiteError) in
      if isNew { return try connection.execute(sql) }
      for step in steps.dropFirst(Int(found - firstVersion)) { try connection.execute(step.sqlite) }
      try connection.execute(
        "UPDATE facts SET value = \(version) WHERE name = 'version'; PRAGMA user_version = \(version)")
    }
  }

  static let settings = """
    PRAGMA page_size = \(pageBytes);
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    PRAGMA secure_delete = OFF;
    PRAGMA trusted_schema = OFF;
    PRAGMA cell_size_check = ON;
    PRAGMA mmap_size = 0;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -16384;
    PRAGMA cache_spill = OFF;
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA journal_size_limit = 67108864;
    """
}
