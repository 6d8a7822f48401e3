import PrismProtocol

/// The tables of records in PostgreSQL, within the transaction of a group or a reading.
struct PostgreSQLRecordTable {
  /// Ids are never used again: a record that is made again after its deletion has another one.
  static let schema = """
    CREATE TABLE records (server_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, namespace text COLLATE "C" NOT NULL,
      tab text COLLATE "C" NOT NULL, device text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
      fields text COLLATE "C" NOT NULL, version bigint NOT NULL, changed_time bigint NOT NULL,
      received timestamptz NOT NULL, is_named boolean NOT NULL DEFAULT false, seq bigint NOT NULL DEFAULT 0,
      insert_seq bigint NOT NULL DEFAULT 0, UNIQUE (namespace, tab, device, id));
    CREATE INDEX records_device ON records (device);
    CREATE INDEX records_seq ON records (namespace, tab, device, seq) WHERE seq > 0;
    CREATE TABLE deleted_records (namespace text COLLATE "C", tab text COLLATE "C", device text COLLATE "C",
      id text COLLATE "C", server_id bigint NOT NULL, is_named boolean NOT NULL, changed_time bigint NOT NULL,
      seq bigint NOT NULL, PRIMARY KEY (namespace, tab, device, id));
    CREATE INDEX deleted_records_seq ON deleted_records (namespace, tab, device, seq);
    CREATE TABLE record_tables (namespace text COLLATE "C", device text COLLATE "C", tab text COLLATE "C",
      seq bigint NOT NULL, floor bigint NOT NULL, PRIMARY KEY (namespace, device, tab));
    CREATE TABLE record_sequences (namespace text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL);
    CREATE TABLE record_answers (stream bigint, packet uuid, answer text NOT NULL, received timestamptz NOT NULL,
      PRIMARY KEY (stream, packet));
    CREATE INDEX record_answers_received ON record_answers (received);

    """

  /// Answers stay longer than the ids of their packets.
  /// With the ids of their packets, whose days are dropped by the time of service.
  static let forgetAnswers = """
    DELETE FROM record_answers a WHERE a.received < now() - interval '32 days'
      AND NOT EXISTS (SELECT FROM packets p WHERE p.packet = a.packet AND p.stream = a.stream)
    """

  private static let columns =
    "server_id, device, id, fields, version, changed_time, namespace, tab, is_named, seq"

  let connection: PostgreSQLConnection
  let deadline: Deadline

  // MARK: Taking

  /// Carries out the operations of a packet, in one round trip.
  func apply(_ packet: RecordPacket, from stream: StreamID) throws(PostgreSQLError) -> RecordApplied {
    let operations = packet.operations
    let found = try connection.query(
      "SELECT given, lost, version FROM prism_apply_records($1, $2, $3, $4, $5, $6, $7, $8, $9)",
      [
        stream.namespace.text, stream.device, PostgreSQLArray.text(operations.map(\.table.text)),
        PostgreSQLArray.text(operations.map(\.key)), PostgreSQLArray.text(operations.map { String($0.kind.rawValue) }),
        PostgreSQLArray.text(operations.map { $0.fields?.text ?? "{}" }),
        PostgreSQLArray.text(operations.map { String($0.version) }),
        PostgreSQLArray.text(operations.map { String($0.changedTime) }),
        PostgreSQLArray.text(operations.map { String($0.after ?? 0) }),
      ], by: deadline)
    let given = PostgreSQLArray.texts(found.bytes(0, 0))
    guard given.count == operations.count else {
      throw PostgreSQLError(kind: .lost, message: "prism_apply_records answered for another number of operations")
    }
    var applied = RecordApplied(lost: Int(found.int(0, 1)), version: found.int(0, 2))
    for (operation, given) in zip(operations, given) {
      guard let given else { continue }
      applied.receipt.ids[operation.table, default: [:]][operation.id] = RecordID(given)
    }
    return applied
  }

  /// Keeps the answers to packets of a group.
  func keep(_ answers: [(stream: Int64, packet: PacketID, receipt: RecordReceipt)]) throws(PostgreSQLError) {
    guard !answers.isEmpty else { return }
    _ = try connection.query(
      "INSERT INTO record_answers SELECT a.*, now() FROM unnest($1::bigint[], $2::uuid[], $3::text[]) a",
      [
        PostgreSQLArray.text(answers.map { String($0.stream) }),
        PostgreSQLArray.text(answers.map(\.packet.description)),
        PostgreSQLArray.text(answers.map { JSONValue.object($0.receipt.members).text }),
      ], by: deadline)
  }

  /// The answer that the packet got; empty if it is forgotten.
  func answer(to packet: PacketID, of stream: StreamID, number: Int64) throws(PostgreSQLError) -> RecordApplied {
    let found = try connection.query(
      """
      SELECT (SELECT answer FROM record_answers WHERE stream = $1 AND packet = $2),
        (SELECT coalesce(max(seq), 0) FROM record_tables WHERE namespace = $3 AND device IN ('', $4))
      """, [String(number), packet.description, stream.namespace.text, stream.device], by: deadline)
    let answer = try? JSONValue(parsing: found.text(0, 0))  // empty: forgotten
    return RecordApplied(
      receipt: answer.map { RecordReceipt($0) } ?? RecordReceipt(), wasDuplicate: true, version: found.int(0, 1))
  }

  // MARK: Reading

  /// A record by the number that the server gave, or by its own id.
  func find(_ id: RecordID, in place: RecordPlace) throws(PostgreSQLError) -> CollectedRecord? {
    if id.isNumber, let number = Int64(id.text),
      let found = try find("server_id = $4 AND NOT is_named", String(number), place)
    {
      return found
    }
    return try find(key: id.text, in: place)
  }

  func find(key: String, in place: RecordPlace) throws(PostgreSQLError) -> CollectedRecord? {
    try find("id = $4", key, place)
  }

  private func find(
    _ condition: String, _ value: String, _ place: RecordPlace
  ) throws(PostgreSQLError) -> CollectedRecord? {
    let found = try connection.query(
      "SELECT \(Self.columns) FROM records WHERE namespace = $1 AND tab = $2 AND device = $3 AND \(condition)",
      [place.namespace.text, place.table.text, place.owner, value], by: deadline)
    return found.count == 1 ? Self.record(found, 0) : nil
  }

  func page(_ filter: RecordFilter) throws(PostgreSQLError) -> [CollectedRecord] {
    let values: [(condition: String, value: String?)] = [
      ("namespace = $", filter.namespace?.text), ("tab = $", filter.table?.text), ("device = $", filter.device),
      ("$ IN (id, CASE WHEN is_named THEN id ELSE server_id::text END)", filter.id?.text),
      ("server_id > $", String(filter.after)),
    ]
    let given = values.filter { $0.value != nil }
    let conditions = given.enumerated().map { $1.condition.replacing("$", with: "$\($0 + 1)") }
    let found = try connection.query(
      """
      SELECT \(Self.columns) FROM records
      WHERE \(conditions.joined(separator: " AND ")) ORDER BY server_id LIMIT \(filter.limit)
      """, given.map(\.value), by: deadline)
    return (0..<found.count).compactMap { Self.record(found, $0) }
  }

  /// nil for a namespace that no longer can be one.
  private static func record(_ found: PostgreSQLResult, _ row: Int) -> CollectedRecord? {
    guard let namespace = NamespaceName(found.text(row, 6)) else { return nil }
    return CollectedRecord(
      number: found.int(row, 0), namespace: namespace, table: found.text(row, 7), device: found.text(row, 1),
      id: found.text(row, 2), fields: [UInt8](found.bytes(row, 3)), version: found.int(row, 4),
      changedTime: found.int(row, 5), isNamed: found.bool(row, 8), sequence: found.int(row, 9))
  }
}
