import PrismProtocol
import PrismSQLite

/// The tables of records in `collector.db`: the newest fields of each, the deletions that devices have to learn, and the
/// answers to packets, for those that come again.
struct SQLiteRecordTable {
  /// Ids are never used again: a record that is made again after its deletion has another one.
  static let tables = """
    CREATE TABLE records (
      server_id INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, tab TEXT NOT NULL, device TEXT NOT NULL,
      id TEXT NOT NULL, fields TEXT NOT NULL, version INTEGER NOT NULL, changed_time INTEGER NOT NULL,
      received_time INTEGER NOT NULL, is_named INTEGER NOT NULL DEFAULT 0, seq INTEGER NOT NULL DEFAULT 0,
      insert_seq INTEGER NOT NULL DEFAULT 0);
    CREATE UNIQUE INDEX records_id ON records (namespace, tab, device, id);
    CREATE INDEX records_device ON records (device);
    CREATE INDEX records_seq ON records (namespace, tab, device, seq) WHERE seq > 0;
    CREATE TABLE record_answers (
      stream INTEGER NOT NULL, packet BLOB NOT NULL, answer TEXT NOT NULL, PRIMARY KEY (stream, packet)) WITHOUT ROWID;
    CREATE TABLE deleted_records (
      namespace TEXT, tab TEXT, device TEXT, id TEXT, server_id INTEGER NOT NULL, is_named INTEGER NOT NULL,
      changed_time INTEGER NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (namespace, tab, device, id)) WITHOUT ROWID;
    CREATE INDEX deleted_records_seq ON deleted_records (namespace, tab, device, seq);
    CREATE TABLE record_tables (
      namespace TEXT, device TEXT, tab TEXT, seq INTEGER NOT NULL, floor INTEGER NOT NULL,
      PRIMARY KEY (namespace, device, tab)) WITHOUT ROWID;
    CREATE TABLE record_sequences (
      namespace TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID;
    """

  enum Column: String, SQLiteColumn {
    case number = "server_id"
    case namespace, tab, device, id, fields, version
    case changedTime = "changed_time"
    case isNamed = "is_named"
    case seq
  }

  /// All columns, for a database that replaces another. An older program's table has those before `isNamed`.
  enum StoredColumn: String, SQLiteColumn {
    case number = "server_id"
    case namespace, tab, device, id, fields, version
    case changedTime = "changed_time"
    case receivedTime = "received_time"
    case isNamed = "is_named"
    case seq
    case insertSeq = "insert_seq"
  }

  let connection: SQLiteConnection
  /// For many records of one transaction.
  var statements: SQLiteStatements?

  // MARK: Another database's records

  func adopt(_ row: SQLiteRow<StoredColumn>) throws(SQLiteError) {
    let insert = try connection.prepare(
      """
      INSERT OR IGNORE INTO records (\(StoredColumn.list)) VALUES (:server_id, :namespace, :tab, :device, :id, :fields,
        :version, :changed_time, :received_time, :is_named, :seq, :insert_seq)
      """)
    insert.bind(":server_id", row.int64(.number))
    insert.bind(":namespace", row.text(.namespace))
    insert.bind(":tab", row.text(.tab))
    insert.bind(":device", row.text(.device))
    insert.bind(":id", row.text(.id))
    insert.bind(":fields", row.text(.fields))
    insert.bind(":version", row.int64(.version))
    insert.bind(":changed_time", row.int64(.changedTime))
    insert.bind(":received_time", row.int64(.receivedTime))
    insert.bind(":is_named", row.int64(.isNamed))
    insert.bind(":seq", row.int64(.seq))
    insert.bind(":insert_seq", row.int64(.insertSeq))
    try insert.run()
  }

  /// Devices know ids of records that can't be read: no other record gets one of them. They know numbers of operations,
  /// too, of which some can't be read: every device gets all records once more.
  /// - Parameter now: milliseconds since 1970; more than any number that was given.
  func skipIDs(now: Int64) throws(SQLiteError) {
    try connection.execute(
      """
      UPDATE sqlite_sequence SET seq = seq + \(1 << 20) WHERE name = 'records';
      REPLACE INTO facts VALUES ('\(SQLiteRecordLog.baseFact)', \(now));
      INSERT OR IGNORE INTO record_tables
        SELECT DISTINCT namespace, device, tab, \(now), 0 FROM records WHERE seq > 0 OR device = '';
      INSERT OR IGNORE INTO record_sequences SELECT DISTINCT namespace, \(now) FROM records WHERE seq > 0 OR device = '';
      """)
  }

  // MARK: Taking

  /// Carries out the operations of a packet, and keeps the answer.
  func apply(
    _ packet: RecordPacket, from stream: StreamID, number: Int64, _ id: PacketID, receivedTime: Int64
  ) throws(SQLiteError) -> RecordApplied {
    let upload = try SQLiteRecordUpload(connection, of: stream, receivedTime: receivedTime)
    var applied = RecordApplied()
    for operation in packet.operations { try upload.carryOut(operation, &applied) }
    applied.version = try SQLiteRecordLog(connection, stream.namespace).version(for: stream.device)
    let insert = try connection.prepare(
      "REPLACE INTO record_answers (stream, packet, answer) VALUES (:stream, :packet, :answer)")
    insert.bind(":stream", number)
    insert.bind(":packet", id.bytes)
    insert.bind(":answer", JSONValue.object(applied.receipt.members).text)
    try insert.run()
    return applied
  }

  /// The answer that the packet got; if it is forgotten, the ids that its records have now.
  func answer(
    to packet: PacketID, _ operations: RecordPacket, from name: StreamID, number stream: Int64
  ) throws(SQLiteError) -> RecordApplied {
    var applied = RecordApplied(wasDuplicate: true)
    applied.version = try SQLiteRecordLog(connection, name.namespace).version(for: name.device)
    let select = try connection.prepare(
      "SELECT answer FROM record_answers WHERE stream = :stream AND packet = :packet")
    select.bind(":stream", stream)
    select.bind(":packet", packet.bytes)
    let text = try select.firstText()
    if let answer = text.flatMap({ try? JSONValue(parsing: $0) }) {
      applied.receipt = RecordReceipt(answer)
      return applied
    }
    for operation in operations.operations where operation.kind != .delete {
      let place = RecordPlace(namespace: name.namespace, table: operation.table, device: name.device)
      guard let known = try find(operation.key, in: place) else { continue }
      applied.receipt.ids[operation.table, default: [:]][operation.id] = RecordID(known.serverID)
    }
    return applied
  }

  // MARK: Reading

  /// The record that its writer or its device gave this id.
  func find(_ id: String, in place: RecordPlace) throws(SQLiteError) -> CollectedRecord? {
    let select = try prepare(
      """
      SELECT \(Column.list) FROM records
      WHERE namespace = :namespace AND tab = :tab AND device = :device AND id = :id
      """)
    select.bind(":id", id)
    return try first(select, in: place)
  }

  /// The record of a device to which the server gave this number.
  func find(number: Int64, in place: RecordPlace) throws(SQLiteError) -> CollectedRecord? {
    let select = try prepare(
      """
      SELECT \(Column.list) FROM records WHERE server_id = :number AND NOT is_named
        AND namespace = :namespace AND tab = :tab AND device = :device
      """)
    select.bind(":number", number)
    return try first(select, in: place)
  }

  private func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    if let statements { return try statements.prepare(sql) }
    return try connection.prepare(sql)
  }

  private func first(_ select: SQLiteStatement, in place: RecordPlace) throws(SQLiteError) -> CollectedRecord? {
    select.bind(":namespace", place.namespace.text)
    select.bind(":tab", place.table.text)
    select.bind(":device", place.owner)
    return try select.first(of: Column.self) { CollectedRecord($0, place.namespace) }
  }

  func page(_ filter: RecordFilter) throws(SQLiteError) -> [CollectedRecord] {
    let values: [(condition: String, parameter: StaticString, value: String?)] = [
      ("namespace = :namespace", ":namespace", filter.namespace?.text), ("tab = :tab", ":tab", filter.table?.text),
      ("device = :device", ":device", filter.device),
      ("(id = :id OR NOT is_named AND server_id = CAST(:id AS INTEGER))", ":id", filter.id?.text),
    ]
    let given = values.filter { $0.value != nil }
    let select = try connection.prepare(
      """
      SELECT \(Column.list) FROM records WHERE \((given.map(\.condition) + ["server_id > :after"]).joined(separator: " AND "))
      ORDER BY server_id LIMIT :limit
      """)
    for one in given { select.bind(one.parameter, one.value) }
    select.bind(":after", filter.after)
    select.bind(":limit", filter.limit)
    var (records, bytes): ([CollectedRecord], Int) = ([], 0)
    defer { select.reset() }
    while bytes < RecordFilter.bytesMax, let row = try select.next(of: Column.self) {
      bytes += row.blob(.fields).count
      guard let namespace = NamespaceName(row.text(.namespace)) else { continue }
      records.append(CollectedRecord(row, namespace))
    }
    return records
  }
}

extension CollectedRecord {
  fileprivate init(_ row: SQLiteRow<SQLiteRecordTable.Column>, _ namespace: NamespaceName) {
    self.init(
      number: row.int64(.number), namespace: namespace, table: row.text(.tab), device: row.text(.device),
      id: row.text(.id), fields: row.bytes(.fields), version: row.int64(.version),
      changedTime: row.int64(.changedTime), isNamed: row.bool(.isNamed), sequence: row.int64(.seq))
  }
}
