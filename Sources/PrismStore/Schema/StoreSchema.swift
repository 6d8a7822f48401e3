import PrismSQLite

/// The tables that all namespaces share, by version. The list is only ever appended to.
enum StoreSchema {
  static let migrations = [
    SQLiteMigration(version: 8, name: "the tables of the first published version") {
      (connection) throws(SQLiteError) in
      try connection.execute(firstSchema + RecordSchema.sql)
      if let epoch = try connection.fact(Epoch.key) { try Epoch.write(epoch, connection) }
    },
    SQLiteMigration(version: 9, name: "rings") { (connection) throws(SQLiteError) in
      try connection.execute(rings)
    },
    SQLiteMigration(version: 10, name: "triggers") { (connection) throws(SQLiteError) in
      try connection.execute(releases)
    },
  ]

  static var newestVersion: Int { migrations.last?.version ?? 0 }
  /// A database of a build before is set aside, and its reports are brought over.
  static var firstVersion: Int { migrations.first?.version ?? 0 }

  /// Takes the database from its version to the newest.
  static func migrate(_ connection: SQLiteConnection) throws(SQLiteError) {
    try connection.migrate(migrations) { (done) throws(SQLiteError) in
      // A second time, so that a damaged header is not taken for a newer prism's.
      try connection.setFact(SchemaVersion.factKey, String(done.version))
    }
  }

  /// Rows are in tables of their own, two a namespace (`QueueTables`). The tables here are shared:
  /// - `ledger`: what `Ledger` counts, `waiting` and `claimed` as of the last disposition (`packets` says what is claimed); `newest_*` nothing; `sequence` the last one used.
  /// - `packets`: claimed rows, as `[first, last, first, last…]` in `members`; `position` is their order of sending.
  /// - `client_ids`: report ids that clients gave (`ClientIDKey`), `delivered_time` once their row was.
  /// - `segments`: a queue's tables (`RowSegments`); `spent`: delivered rows that are still in them, as `[first, last…]`.
  /// - `held_time`: by `HeldClock`, as `delivered_time` in `client_ids` is.
  /// - `dead`, `damaged`: rows in quarantine, with everything that they need to be read without any other table.
  private static let firstSchema = """
    PRAGMA application_id = \(SchemaVersion.applicationID);
    CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    INSERT INTO facts VALUES ('epoch', lower(hex(randomblob(10))));
    CREATE TABLE namespaces (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, checksum INTEGER);
    CREATE TABLE types (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, checksum INTEGER);
    CREATE TABLE contexts (
      id INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, last_sequence INTEGER NOT NULL, checksum INTEGER NOT NULL,
      members BLOB NOT NULL, user INTEGER NOT NULL DEFAULT -1);
    CREATE TABLE ledger (
      namespace INTEGER, kind INTEGER, stored INTEGER NOT NULL, waiting INTEGER NOT NULL, claimed INTEGER NOT NULL,
      delivered INTEGER NOT NULL, expired INTEGER NOT NULL, evicted INTEGER NOT NULL, cleared INTEGER NOT NULL,
      dead INTEGER NOT NULL, removed INTEGER NOT NULL, corrupt INTEGER NOT NULL, bytes INTEGER NOT NULL,
      sequence INTEGER NOT NULL, newest_crash INTEGER NOT NULL, newest_realtime INTEGER NOT NULL,
      newest_rest INTEGER NOT NULL, last_accepted BLOB, checksum INTEGER, segments TEXT, spent TEXT,
      PRIMARY KEY (namespace, kind)) WITHOUT ROWID;
    CREATE TABLE packets (
      id BLOB PRIMARY KEY, namespace INTEGER NOT NULL, kind INTEGER NOT NULL, position INTEGER NOT NULL,
      created_time INTEGER NOT NULL, bytes INTEGER NOT NULL, has_client_ids INTEGER NOT NULL, header TEXT NOT NULL,
      members TEXT NOT NULL, checksum INTEGER) WITHOUT ROWID;
    CREATE TABLE settled (
      id BLOB PRIMARY KEY, namespace INTEGER NOT NULL, kind INTEGER NOT NULL, settled_time INTEGER NOT NULL,
      attempts INTEGER NOT NULL, was_duplicate INTEGER NOT NULL, members TEXT NOT NULL, held_time INTEGER)
      WITHOUT ROWID;
    CREATE TABLE client_ids (
      namespace INTEGER, report_id TEXT, row INTEGER NOT NULL, delivered_time INTEGER,
      PRIMARY KEY (namespace, report_id)) WITHOUT ROWID;
    CREATE INDEX client_ids_delivered ON client_ids (delivered_time) WHERE delivered_time IS NOT NULL;
    CREATE TABLE notes (namespace INTEGER, key TEXT, value BLOB NOT NULL, PRIMARY KEY (namespace, key)) WITHOUT ROWID;
    CREATE TABLE dead (
      number INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, kind INTEGER NOT NULL, row INTEGER NOT NULL,
      type INTEGER NOT NULL, created_time INTEGER NOT NULL, flags INTEGER NOT NULL, size INTEGER NOT NULL,
      report_id TEXT NOT NULL, packet BLOB NOT NULL, status INTEGER NOT NULL, message TEXT NOT NULL,
      dead_time INTEGER NOT NULL, attempts INTEGER NOT NULL, body BLOB NOT NULL, payload BLOB, checksum INTEGER,
      user INTEGER NOT NULL DEFAULT -1);
    CREATE TABLE damaged (
      number INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, kind INTEGER NOT NULL, found_time INTEGER NOT NULL,
      row, type, created_time, context, flags, size, checksum, report_id, body, payload);
    """

  /// `ring`: which of the segments are of the ring, and what is kept in each (`RowSegments`).
  private static let rings = """
    ALTER TABLE ledger ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE ledger ADD COLUMN overwritten INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE ledger ADD COLUMN ring TEXT;
    """

  /// `released`: rows of a ring that wait for a packet; `rule`: the trigger that let them go.
  private static let releases = """
    CREATE TABLE released (
      number INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, kind INTEGER NOT NULL, rule TEXT NOT NULL,
      members TEXT NOT NULL, checksum INTEGER NOT NULL);
    ALTER TABLE packets ADD COLUMN rule TEXT;
    """
}
