import PrismProtocol
import PrismSQLite

/// The tables of `collector.db`.
///
/// Reports are written in one ascending row of ids and have no index on themselves. For each block of 4,096 ids the
/// tables `type_blocks` and `stream_blocks` say which types and streams are in it. So an index costs a few rows a
/// block, and a page of a rare type reads only blocks that have it.
///
/// `contexts` has what reports of a packet have in common. A context's id is that of the first report that refers to it. Each day
/// begins with new ones, so contexts are deleted as reports are: up to an id. The index `contexts_copy` has each a second time:
/// many reports would be lost with one.
enum PacketSchema {
  static let version: Int64 = 5
  static let blockBits: Int64 = 12
  static let pageBytes = 8192

  static let sql = """
    CREATE TABLE facts (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE streams (
      id INTEGER PRIMARY KEY, device TEXT NOT NULL, namespace TEXT NOT NULL, kind TEXT NOT NULL, last_packet BLOB,
      packets INTEGER NOT NULL, ledger TEXT, received_time INTEGER NOT NULL, forgotten_time INTEGER);
    CREATE UNIQUE INDEX streams_name ON streams (device, namespace, kind);
    CREATE TABLE types (id INTEGER PRIMARY KEY, namespace TEXT NOT NULL, type TEXT NOT NULL);
    CREATE UNIQUE INDEX types_name ON types (namespace, type);
    CREATE TABLE packets (
      id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, packet BLOB NOT NULL, number INTEGER NOT NULL, day INTEGER NOT NULL);
    CREATE UNIQUE INDEX packets_name ON packets (stream, packet);
    CREATE TABLE reports (
      id INTEGER PRIMARY KEY, stream INTEGER NOT NULL, packet BLOB NOT NULL, type INTEGER NOT NULL,
      chain_broken INTEGER NOT NULL, received_time INTEGER NOT NULL, created_time INTEGER, report_id TEXT NOT NULL,
      sum INTEGER NOT NULL, meta TEXT NOT NULL, payload BLOB, context INTEGER);
    CREATE TABLE contexts (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL, common TEXT NOT NULL);
    CREATE INDEX contexts_copy ON contexts (hash, common);
    CREATE TABLE type_blocks (type INTEGER, block INTEGER, PRIMARY KEY (type, block)) WITHOUT ROWID;
    CREATE TABLE stream_blocks (stream INTEGER, block INTEGER, PRIMARY KEY (stream, block)) WITHOUT ROWID;
    CREATE TABLE days (day INTEGER PRIMARY KEY, first_report INTEGER NOT NULL);
    CREATE TABLE imports (
      file TEXT PRIMARY KEY, cursor INTEGER NOT NULL, saved INTEGER NOT NULL, lost INTEGER NOT NULL, is_done INTEGER NOT NULL
    ) WITHOUT ROWID;
    \(view)
    -- A second time, so that a damaged header is not taken for a newer program's.
    INSERT INTO facts VALUES ('version', \(version));
    \(RecordTables.sqlite)
    \(StoreMark.newInSQLite)
    \(SQLiteOutputSource.schema)
    PRAGMA user_version = \(version);
    """

  private static let meta = """
    CASE WHEN r.context IS NULL THEN r.meta ELSE substr(r.meta, 1, length(r.meta) - 1) || ',' || substr(c.common, 2) END
    """

  /// `correction` is `created_time` less `CREATE_TIME`, in milliseconds: 0 where the clock was right.
  private static let view = """
    CREATE VIEW report AS
      SELECT r.id, s.device, s.namespace, s.kind, t.type, r.report_id, r.created_time, r.received_time,
        lower(substr(hex(r.packet), 1, 8) || '-' || substr(hex(r.packet), 9, 4) || '-' || substr(hex(r.packet), 13, 4)
          || '-' || substr(hex(r.packet), 17, 4) || '-' || substr(hex(r.packet), 21)) AS packet,
        r.chain_broken, \(meta) AS meta, r.payload, CASE WHEN r.created_time IS NOT NULL AND json_valid(\(meta))
          THEN coalesce(r.created_time - CAST(\(meta) ->> 'CREATE_TIME' AS INTEGER), 0) ELSE 0 END AS correction
      FROM reports r JOIN streams s ON s.id = r.stream JOIN types t ON t.id = r.type LEFT JOIN contexts c ON c.id = r.context;
    """

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
