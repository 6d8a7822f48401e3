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
    SQLiteMigration(version: 11, name: "triggers of a sample of the fleet") { (connection) throws(SQLiteError) in
      try connection.execute("ALTER TABLE released ADD COLUMN devices INTEGER")
    },
    SQLiteMigration(version: 12, name: "the clock of claims and of changes") { (connection) throws(SQLiteError) in
      for table in ["packets", "record_packets", "records"] {
        try connection.execute("ALTER TABLE \(table) ADD COLUMN clock TEXT")
      }
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

/// Tells the store's own database from another's, and a newer one from a damaged one.
enum SchemaVersion {
  static let factKey = "version"
  /// "PRSM", so that `file` and others can tell whose database it is.
  static let applicationID = 0x5052_534D

  /// - Throws: `newer`; `invalidContent` for a file that the store did not make, or whose header was changed.
  static func check(_ connection: SQLiteConnection) throws(SQLiteError) {
    let version = Int(try connection.firstInt("PRAGMA user_version") ?? 0)
    let tables = try connection.firstInt("SELECT count(*) FROM sqlite_schema") ?? 0
    guard tables > 0 else {
      guard version == 0 else { throw .invalidContent }
      return
    }
    guard try connection.firstInt("SELECT count(*) FROM sqlite_schema WHERE name = 'facts'") == 1 else {
      throw .invalidContent
    }
    let written = try connection.fact(factKey).map { Int($0) ?? -1 }
    guard written ?? version == version else { throw .invalidContent }
    guard version <= StoreSchema.newestVersion else { throw .newer(version) }
    guard written != nil, version >= StoreSchema.firstVersion else {
      throw .corrupt("the database is of version \(version), before the first published one")
    }
  }
}

// Errors of the store's own about its database.
extension SQLiteError {
  /// The structure is sound, but a value was changed: its checksum fails, or it contradicts another.
  static let invalidContent = SQLiteError.corrupt("the database has content that prism never writes")
  /// The file was replaced by another database of prism's.
  static let otherDatabase = SQLiteError(
    code: -2, message: "another database of prism's was put in the place of ours: restart prismd to use it")
  /// The file was replaced by one with other names: what the caller knows by their numbers is not valid any more.
  static let changedNames = SQLiteError(code: -2, message: "the database is another one than before")

  /// The database is of a version that this program doesn't know.
  static func newer(_ version: Int) -> SQLiteError { SQLiteError(code: -1, message: String(version)) }
  var newerVersion: Int? { code == -1 ? Int(message) : nil }
}

/// The tables of records (docs/store.md), shared by all namespaces.
///
/// - `record_tables`: each table with the ledger of its changes. `delivered` are those that the server confirmed, `removed`
///   those that were merged into a later one, `dead` those that the server refused.
/// - `records`: `next` is the operation that could be sent now, `position` the order of waiting changes; `flags` from 4 on are of
///   refused ones. `owner` is the user who put it first (`RowOwner`). NULL: the server did.
/// - `record_packets`, `record_operations`: packets in flight, with their operations as they were sent.
/// - `down_tables`: how far each table that comes down is in step; `content` are the rows of `down_records` that programs read.
/// - `down_records`: records as the server has them. A whole table is written under a new content, beside the old one.
/// - `down_links`: what they refer to.
enum RecordSchema {
  static let sql = """
    CREATE TABLE record_tables (
      number INTEGER PRIMARY KEY, namespace INTEGER NOT NULL, name TEXT NOT NULL, generation INTEGER NOT NULL,
      records INTEGER NOT NULL, stored INTEGER NOT NULL, waiting INTEGER NOT NULL, claimed INTEGER NOT NULL,
      delivered INTEGER NOT NULL, dead INTEGER NOT NULL, removed INTEGER NOT NULL, corrupt INTEGER NOT NULL,
      position INTEGER NOT NULL, checksum INTEGER NOT NULL);
    CREATE TABLE records (
      number INTEGER PRIMARY KEY, tab INTEGER NOT NULL, id TEXT NOT NULL, server_id TEXT, state INTEGER NOT NULL,
      sent INTEGER, flags INTEGER NOT NULL, next INTEGER NOT NULL, version INTEGER NOT NULL,
      changed_time INTEGER NOT NULL, position INTEGER NOT NULL, refusal TEXT, fields BLOB NOT NULL,
      checksum INTEGER NOT NULL, base INTEGER, owner INTEGER);
    CREATE UNIQUE INDEX records_id ON records (tab, id);
    CREATE INDEX records_server_id ON records (tab, server_id) WHERE server_id IS NOT NULL;
    CREATE INDEX records_next ON records (tab, next, position) WHERE next > 0;
    CREATE INDEX records_refused ON records (tab, number) WHERE flags >= 4;
    CREATE INDEX records_owner ON records (tab, owner) WHERE owner IS NOT NULL;
    CREATE TABLE record_packets (
      id BLOB PRIMARY KEY, namespace INTEGER NOT NULL, position INTEGER NOT NULL, created_time INTEGER NOT NULL,
      header TEXT NOT NULL, items INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE record_operations (
      packet BLOB NOT NULL, place INTEGER NOT NULL, record INTEGER NOT NULL, tab INTEGER NOT NULL, op TEXT NOT NULL,
      line BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (packet, place)) WITHOUT ROWID;
    CREATE TABLE down_tables (
      tab INTEGER PRIMARY KEY, content INTEGER NOT NULL, sequence INTEGER, shape INTEGER NOT NULL, rows INTEGER NOT NULL,
      held_time INTEGER NOT NULL, kept_local INTEGER NOT NULL, kept_remote INTEGER NOT NULL, checksum INTEGER NOT NULL);
    CREATE TABLE down_records (
      content INTEGER NOT NULL, id TEXT NOT NULL, local_id TEXT, version INTEGER NOT NULL, time INTEGER NOT NULL,
      fields BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (content, id)) WITHOUT ROWID;
    CREATE TABLE down_links (
      content INTEGER NOT NULL, target TEXT NOT NULL, id TEXT NOT NULL, PRIMARY KEY (content, target, id)) WITHOUT ROWID;
    """
}
