import PrismProtocol

/// The tables `records` and `record_answers` in PostgreSQL, within the transaction of a group or a reading.
struct PostgreSQLRecordTable {
  /// Ids are never used again: a record that is made again after its deletion has another one.
  static let schema = """
    CREATE TABLE records (server_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, namespace text COLLATE "C" NOT NULL,
      tab text COLLATE "C" NOT NULL, device text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
      fields text COLLATE "C" NOT NULL, version bigint NOT NULL, changed_time bigint NOT NULL,
      received timestamptz NOT NULL, UNIQUE (namespace, tab, device, id));
    CREATE TABLE record_answers (stream bigint, packet uuid, answer text NOT NULL, received timestamptz NOT NULL,
      PRIMARY KEY (stream, packet));
    CREATE INDEX record_answers_received ON record_answers (received);

    """

  static let deviceIndex = "CREATE INDEX records_device ON records (device);"

  /// Answers stay longer than the ids of their packets.
  static let forgetAnswers = "DELETE FROM record_answers WHERE received < now() - interval '32 days'"

  private static let key = "namespace = $1 AND tab = $2 AND device = $3 AND id = $4"
  private static let upsert = """
    INSERT INTO records (namespace, tab, device, id, fields, version, changed_time, received)
    VALUES ($1, $2, $3, $4, $5, $6, $7, now()) ON CONFLICT (namespace, tab, device, id) DO UPDATE SET
      fields = excluded.fields, version = excluded.version, changed_time = excluded.changed_time,
      received = excluded.received RETURNING server_id
    """

  let connection: PostgreSQLConnection
  let deadline: Deadline

  // MARK: Taking

  /// Carries out the operations of a packet, and keeps the answer.
  func apply(
    _ packet: RecordPacket, from stream: StreamID, number: Int64, _ id: PacketID
  ) throws(PostgreSQLError) -> RecordReceipt {
    var receipt = RecordReceipt()
    for operation in packet.operations {
      let key = [stream.namespace.text, operation.table.text, stream.device, operation.id.text]
      guard operation.kind != .delete else {
        _ = try connection.query("DELETE FROM records WHERE \(Self.key)", key, by: deadline)
        continue
      }
      let given = try connection.query(
        Self.upsert,
        key + [operation.fields?.text ?? "{}", String(operation.version), String(operation.changedTime)], by: deadline)
      receipt.ids[operation.table, default: [:]][operation.id] = RecordID(String(given.int(0, 0)))
    }
    _ = try connection.query(
      "INSERT INTO record_answers VALUES ($1, $2, $3, now())",
      [String(number), id.description, JSONValue.object(receipt.members).text], by: deadline)
    return receipt
  }

  /// The answer that the packet got; empty if it is forgotten.
  func answer(to packet: PacketID, of stream: Int64) throws(PostgreSQLError) -> RecordReceipt {
    let found = try connection.query(
      "SELECT answer FROM record_answers WHERE stream = $1 AND packet = $2",
      [String(stream), packet.description], by: deadline)
    guard found.count == 1, let value = try? JSONValue(parsing: found.text(0, 0)) else { return RecordReceipt() }
    return RecordReceipt(value)
  }

  // MARK: Reading

  func page(_ filter: RecordFilter) throws(PostgreSQLError) -> [CollectedRecord] {
    let values: [(condition: String, value: String?)] = [
      ("namespace = $", filter.namespace?.text), ("tab = $", filter.table?.text), ("device = $", filter.device),
      ("$ IN (id, server_id::text)", filter.id?.text), ("server_id > $", String(filter.after)),
    ]
    let given = values.filter { $0.value != nil }
    let conditions = given.enumerated().map { $1.condition.replacing("$", with: "$\($0 + 1)") }
    let found = try connection.query(
      """
      SELECT server_id, device, id, fields, version, changed_time, namespace, tab FROM records
      WHERE \(conditions.joined(separator: " AND ")) ORDER BY server_id LIMIT \(filter.limit)
      """, given.map(\.value), by: deadline)
    return (0..<found.count).compactMap { row in
      guard let namespace = NamespaceName(found.text(row, 6)) else { return nil }
      return CollectedRecord(
        serverID: found.int(row, 0), namespace: namespace, table: found.text(row, 7), device: found.text(row, 1),
        id: found.text(row, 2), fields: [UInt8](found.bytes(row, 3)), version: found.int(row, 4),
        changedTime: found.int(row, 5))
    }
  }
}
