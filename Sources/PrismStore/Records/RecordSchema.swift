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
