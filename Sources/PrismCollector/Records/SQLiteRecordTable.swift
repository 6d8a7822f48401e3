import PrismProtocol
import PrismSQLite

/// The tables `records` and `record_answers` of `collector.db`: the newest fields of each device's records, and the answers
/// to packets, for those that come again.
struct SQLiteRecordTable {
  /// Ids are never used again: a record that is made again after its deletion has another one.
  static let sql = """
    CREATE TABLE IF NOT EXISTS records (
      server_id INTEGER PRIMARY KEY AUTOINCREMENT, namespace TEXT NOT NULL, tab TEXT NOT NULL, device TEXT NOT NULL,
      id TEXT NOT NULL, fields TEXT NOT NULL, version INTEGER NOT NULL, changed_time INTEGER NOT NULL,
      received_time INTEGER NOT NULL);
    CREATE UNIQUE INDEX IF NOT EXISTS records_id ON records (namespace, tab, device, id);
    CREATE INDEX IF NOT EXISTS records_device ON records (device);
    CREATE TABLE IF NOT EXISTS record_answers (
      stream INTEGER NOT NULL, packet BLOB NOT NULL, answer TEXT NOT NULL, PRIMARY KEY (stream, packet)) WITHOUT ROWID;
    """

  private enum Column: String, SQLiteColumn {
    case serverID = "server_id"
    case namespace, tab, device, id, fields, version
    case changedTime = "changed_time"
  }

  /// All columns, for a database that replaces another.
  enum StoredColumn: String, SQLiteColumn {
    case serverID = "server_id"
    case namespace, tab, device, id, fields, version
    case changedTime = "changed_time"
    case receivedTime = "received_time"
  }

  let connection: SQLiteConnection

  // MARK: Another database's records

  func adopt(_ row: SQLiteRow<StoredColumn>) throws(SQLiteError) {
    let insert = try connection.prepare(
      """
      INSERT OR IGNORE INTO records (\(StoredColumn.list)) VALUES (:server_id, :namespace, :tab, :device, :id, :fields,
        :version, :changed_time, :received_time)
      """)
    insert.bind(":server_id", row.int64(.serverID))
    insert.bind(":namespace", row.text(.namespace))
    insert.bind(":tab", row.text(.tab))
    insert.bind(":device", row.text(.device))
    insert.bind(":id", row.text(.id))
    insert.bind(":fields", row.text(.fields))
    insert.bind(":version", row.int64(.version))
    insert.bind(":changed_time", row.int64(.changedTime))
    insert.bind(":received_time", row.int64(.receivedTime))
    try insert.run()
  }

  /// Devices know ids of records that can't be read: no other record gets one of them.
  func skipIDs() throws(SQLiteError) {
    try connection.execute("UPDATE sqlite_sequence SET seq = seq + \(1 << 20) WHERE name = 'records'")
  }

  // MARK: Taking

  /// Carries out the operations of a packet, and keeps the answer.
  func apply(
    _ packet: RecordPacket, from stream: StreamID, number: Int64, _ id: PacketID, receivedTime: Int64
  ) throws(SQLiteError) -> RecordReceipt {
    var receipt = RecordReceipt()
    for operation in packet.operations {
      guard operation.kind != .delete else {
        try delete(operation, stream)
        continue
      }
      let given = try upsert(operation, stream, receivedTime: receivedTime)
      receipt.ids[operation.table, default: [:]][operation.id] = RecordID(String(given))
    }
    let insert = try connection.prepare(
      "REPLACE INTO record_answers (stream, packet, answer) VALUES (:stream, :packet, :answer)")
    insert.bind(":stream", number)
    insert.bind(":packet", id.bytes)
    insert.bind(":answer", JSONValue.object(receipt.members).text)
    try insert.run()
    return receipt
  }

  /// The answer that the packet got; if it is forgotten, the ids that its records have now.
  func answer(
    to packet: PacketID, _ operations: RecordPacket, from name: StreamID, number stream: Int64
  ) throws(SQLiteError) -> RecordReceipt {
    let select = try connection.prepare(
      "SELECT answer FROM record_answers WHERE stream = :stream AND packet = :packet")
    select.bind(":stream", stream)
    select.bind(":packet", packet.bytes)
    let text = try select.firstText()
    if let answer = text.flatMap({ try? JSONValue(parsing: $0) }) { return RecordReceipt(answer) }
    var receipt = RecordReceipt()
    let find = try connection.prepare(
      """
      SELECT server_id FROM records WHERE namespace = :namespace AND tab = :tab AND device = :device AND id = :id
      """)
    for operation in operations.operations where operation.kind != .delete {
      bind(find, operation, name)
      guard let known = try find.firstInt() else { continue }
      receipt.ids[operation.table, default: [:]][operation.id] = RecordID(String(known))
    }
    return receipt
  }

  private func bind(_ statement: SQLiteStatement, _ operation: RecordOperation, _ stream: StreamID) {
    statement.bind(":namespace", stream.namespace.text)
    statement.bind(":tab", operation.table.text)
    statement.bind(":device", stream.device)
    statement.bind(":id", operation.id.text)
  }

  private func upsert(
    _ operation: RecordOperation, _ stream: StreamID, receivedTime: Int64
  ) throws(SQLiteError) -> Int64 {
    let upsert = try connection.prepare(
      """
      INSERT INTO records (namespace, tab, device, id, fields, version, changed_time, received_time)
      VALUES (:namespace, :tab, :device, :id, :fields, :version, :changed_time, :received_time)
      ON CONFLICT (namespace, tab, device, id) DO UPDATE SET fields = excluded.fields, version = excluded.version,
        changed_time = excluded.changed_time, received_time = excluded.received_time RETURNING server_id
      """)
    bind(upsert, operation, stream)
    upsert.bind(":fields", operation.fields?.text ?? "{}")
    upsert.bind(":version", operation.version)
    upsert.bind(":changed_time", operation.changedTime)
    upsert.bind(":received_time", receivedTime)
    return try upsert.firstInt() ?? 0
  }

  private func delete(_ operation: RecordOperation, _ stream: StreamID) throws(SQLiteError) {
    let delete = try connection.prepare(
      "DELETE FROM records WHERE namespace = :namespace AND tab = :tab AND device = :device AND id = :id")
    bind(delete, operation, stream)
    try delete.run()
  }

  // MARK: Reading

  func page(_ filter: RecordFilter) throws(SQLiteError) -> [CollectedRecord] {
    let values: [(condition: String, parameter: StaticString, value: String?)] = [
      ("namespace = :namespace", ":namespace", filter.namespace?.text), ("tab = :tab", ":tab", filter.table?.text),
      ("device = :device", ":device", filter.device),
      ("(id = :id OR server_id = CAST(:id AS INTEGER))", ":id", filter.id?.text),
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
      records.append(
        CollectedRecord(
          serverID: row.int64(.serverID), namespace: namespace, table: row.text(.tab), device: row.text(.device),
          id: row.text(.id), fields: row.bytes(.fields), version: row.int64(.version),
          changedTime: row.int64(.changedTime)))
    }
    return records
  }
}
