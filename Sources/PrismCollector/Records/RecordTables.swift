import PrismProtocol
import PrismSQL
import PrismSQLite

/// The tables of records, within a transaction: the newest fields of each, and the deletions that devices have to learn. With
/// them are the numbers of the server's changes, and the answers to packets, for those that come again.
struct RecordTables {
  /// Rows that are read at a time.
  private static let pageMax = 100

  private static let tables = [
    // A record that is made again after its deletion has another number.
    SQLTable(
      "records",
      [
        "server_id identity", "namespace text!", "tab text!", "device text!", "id text!", "fields text!",
        "version bigint!", "changed_time bigint!", "received_time bigint!", "is_named bigint!", "seq bigint!",
        "insert_seq bigint!", "reported text", "fetched_time bigint!=0",
      ], key: nil),
    SQLTable(
      "record_answers", ["stream bigint!", "packet bytes!", "answer text!", "received_time bigint!"],
      key: "stream, packet"),
    SQLTable(
      "deleted_records",
      [
        "namespace text!", "tab text!", "device text!", "id text!", "server_id bigint!", "is_named bigint!",
        "changed_time bigint!", "seq bigint!",
      ], key: "namespace, tab, device, id"),
    SQLTable(
      "record_tables",
      ["namespace text!", "device text!", "tab text!", "seq bigint!", "floor bigint!", "fetched_seq bigint!=0"],
      key: "namespace, device, tab"),
    // The row without a namespace: numbers up to this one were given by a database that is gone (docs/backup.md).
    SQLTable("record_sequences", ["namespace text!", "seq bigint!"], key: "namespace"),
  ]
  private static let indexes = """
    CREATE UNIQUE INDEX records_id ON records (namespace, tab, device, id);
    CREATE INDEX records_device ON records (device);
    CREATE INDEX records_seq ON records (namespace, tab, device, seq) WHERE seq > 0;
    CREATE INDEX deleted_records_seq ON deleted_records (namespace, tab, device, seq);
    CREATE INDEX record_answers_received ON record_answers (received_time);

    """
  /// Those whose rows are the same in every store.
  static let carried = tables.filter { $0.name != "record_answers" }
  static let sqlite = tables.map(\.sqlite).joined() + indexes
  static let postgreSQL = tables.map(\.postgreSQL).joined() + indexes

  enum Column: String, SQLiteColumn {
    case number = "server_id"
    case namespace, tab, device, id, fields, version, changedTime, receivedTime, isNamed, seq, insertSeq
    // A database of 0.2.0 that was set aside lacks them.
    case reported, fetchedTime
  }

  /// The same, and the position of its device.
  enum ReadColumn: String, SQLiteColumn {
    case number = "server_id"
    case namespace, tab, device, id, fields, version, changedTime, receivedTime, isNamed, seq, insertSeq, reported,
      fetchedTime
    case position = """
      (SELECT fetched_seq FROM record_tables t
      WHERE t.namespace = records.namespace AND t.device = records.device AND t.tab = records.tab)
      """
  }

  private enum AnswerColumn: String, SQLiteColumn { case stream, packet, answer, receivedTime }

  let statements: SQLStatements

  var positions: RecordPositions { RecordPositions(statements: statements) }

  init(_ driver: any SQLDriver) { statements = SQLStatements(driver: driver) }

  // MARK: Records

  /// A record by the number that the server gave it, or by its own id.
  func find(_ id: RecordID, in place: RecordPlace) throws -> CollectedRecord? {
    let scope = "FROM records WHERE namespace = $1 AND tab = $2 AND device = $3"
    let values: [any SQLConvertible] = [place.namespace.text, place.table.text, place.owner]
    if id.isNumber, let number = Int64(id.text) {
      let found = try statements.first(
        of: ReadColumn.self, "\(scope) AND server_id = $4 AND is_named = 0", values + [number])
      if let found { return CollectedRecord(found) }
    }
    return try statements.first(of: ReadColumn.self, "\(scope) AND id = $4", values + [id.text])
      .flatMap(CollectedRecord.init)
  }

  func page(_ filter: RecordFilter) throws -> [CollectedRecord] {
    let given: [(condition: String, value: (any SQLConvertible)?)] = [
      ("namespace = $", filter.namespace?.text), ("tab = $", filter.table?.text), ("device = $", filter.device),
      ("$ IN (id, CASE WHEN is_named = 1 THEN id ELSE CAST(server_id AS text) END)", filter.id?.text),
      ("server_id > $", filter.after),
    ]
    let conditions =
      given.filter { $0.value != nil }.enumerated().map { $1.condition.replacing("$", with: "$\($0 + 1)") }
      + [filter.scope.condition(on: "namespace", statements.driver.dialect)]
    var values = given.compactMap(\.value)
    var (records, bytes): ([CollectedRecord], Int) = ([], 0)
    while records.count < filter.limit, bytes < RecordFilter.bytesMax {
      let count = min(Self.pageMax, filter.limit - records.count)
      let found = try statements.rows(
        of: ReadColumn.self,
        "FROM records WHERE \(conditions.joined(separator: " AND ")) ORDER BY server_id LIMIT \(count)", values)
      let page = found.compactMap { CollectedRecord($0) }
      records += page
      bytes += page.reduce(0) { $0 + $1.fields.count }
      guard found.count == count, let last = found.last?.int64(.number) else { break }
      values[values.count - 1] = last
    }
    return records
  }

  private enum TagColumn: String, SQLiteColumn { case namespace, device, id, fields }

  /// The tags of all devices that these namespaces have, at most `limit` records of each.
  func tags(of namespaces: [String], limit: Int) throws -> [CollectedTags] {
    try namespaces.flatMap { namespace in
      try statements.rows(
        of: TagColumn.self, "FROM records WHERE namespace = $1 AND tab = $2 ORDER BY device, id LIMIT \(limit)",
        [namespace, RecordTableName.tags.text])
    }.compactMap { CollectedTags(namespace: $0.text(.namespace), $0.text(.device), $0.text(.id), $0.text(.fields)) }
  }

  private enum CommandColumn: String, SQLiteColumn { case namespace, device, id }

  /// Commands that did not change since. - Parameter time: milliseconds since 1970.
  func commands(changedBefore time: Int64, limit: Int) throws -> [CommandPlace] {
    try statements.rows(
      of: CommandColumn.self,
      """
      FROM records WHERE namespace IN (SELECT namespace FROM record_sequences) AND tab = $1 AND device > ''
        AND received_time < $2 LIMIT $3
      """, [RecordTableName.command.text, time, limit]
    ).compactMap { CommandPlace(namespace: $0.text(.namespace), device: $0.text(.device), id: $0.text(.id)) }
  }

  // MARK: Numbers of changes

  /// Those who change records of a namespace wait for each other, and for those who hold the lock shared.
  func lock(_ namespace: NamespaceName, isShared: Bool) throws {
    try statements.driver.lock(namespace.text, isShared: isShared)
  }

  /// The newest number of the namespace's changes; nil: the server never changed a record of it.
  func sequence(of namespace: NamespaceName) throws -> Int64? {
    try statements.integer("SELECT seq FROM record_sequences WHERE namespace = $1", [namespace.text])
  }

  /// The newest number of what a device reads; 0: it has nothing to learn.
  func version(for stream: StreamID) throws -> Int64 {
    try statements.integer(
      "SELECT max(seq) FROM record_tables WHERE namespace = $1 AND device IN ('', $2)",
      [stream.namespace.text, stream.device]) ?? 0
  }

  /// New numbers for a table, which become visible in their order: the sequence's row is locked until the commit.
  /// - Returns: the last one.
  func next(_ count: Int, for place: RecordPlace) throws -> Int64 {
    let number = try statements.integer(
      """
      INSERT INTO record_sequences (namespace, seq)
      VALUES ($1, $2 + coalesce((SELECT seq FROM record_sequences WHERE namespace = ''), 0))
      ON CONFLICT (namespace) DO UPDATE SET seq = record_sequences.seq + $2 RETURNING seq
      """, [place.namespace.text, count])
    guard let number else { throw StoreFailure.unavailable("the sequence of \(place.namespace) gave no number") }
    try statements.run(
      """
      INSERT INTO record_tables (namespace, device, tab, seq, floor, fetched_seq) VALUES ($1, $2, $3, $4, 0, 0)
      ON CONFLICT (namespace, device, tab) DO UPDATE SET seq = excluded.seq
      """, [place.namespace.text, place.owner, place.table.text, number])
    return number
  }

  /// A table is the fleet's from its first record on, or the devices'.
  func otherOwner(than place: RecordPlace) throws -> RecordRefusal? {
    let isOfFleet =
      try statements.run(
        "SELECT 1 FROM record_tables WHERE namespace = $1 AND tab = $2 AND device = ''",
        [place.namespace.text, place.table.text]) > 0
    if place.device != nil { return isOfFleet ? .isOfFleet : nil }
    if isOfFleet { return nil }
    let isOfDevices =
      try statements.run(
        "SELECT 1 FROM records WHERE namespace = $1 AND tab = $2 AND device > '' LIMIT 1",
        [place.namespace.text, place.table.text]) > 0
    return isOfDevices ? .isOfDevices : nil
  }

  /// Forgets deletions for which devices get all records anyway.
  func forgetDeletions(of place: RecordPlace) throws {
    let scope = "namespace = $1 AND tab = $2 AND device = $3"
    let values: [any SQLConvertible] = [place.namespace.text, place.table.text, place.owner]
    let floor = try statements.integer(
      "SELECT seq FROM deleted_records WHERE \(scope) ORDER BY seq DESC LIMIT 1 OFFSET \(RecordLog.deletionsMax)",
      values)
    guard let floor else { return }
    try statements.run("DELETE FROM deleted_records WHERE \(scope) AND seq <= $4", values + [floor])
    try statements.run("UPDATE record_tables SET floor = $4 WHERE \(scope)", values + [floor])
  }

  // MARK: Changes of the server's

  /// - Parameter now: milliseconds since 1970.
  /// - Returns: a result each, or the first refusal; then the transaction is to be rolled back.
  func change(
    _ changes: [RecordChange], of place: RecordPlace, if condition: ChangeCondition, now: Int64
  ) throws -> Result<[RecordChanged], RecordFailure> {
    try lock(place.namespace, isShared: false)
    if let refusal = try otherOwner(than: place) { return .failure(.refused(refusal, index: 0)) }
    var batch = RecordBatch(self, place.namespace, owner: place.owner, now: now)
    return try batch.make(changes, in: place.table, if: condition)
  }

  // MARK: Packets

  /// Carries out the operations of a packet, and keeps the answer.
  /// - Parameters:
  ///   - number: of the stream in the store.
  ///   - now: milliseconds since 1970.
  func apply(
    _ packet: RecordPacket, _ id: PacketID, from stream: StreamID, number: Int64, now: Int64
  ) throws -> RecordApplied {
    try lock(stream.namespace, isShared: true)
    let newest = try sequence(of: stream.namespace)
    try positions.hear(packet.operations, from: stream, newest: newest, now: now)
    var batch = RecordBatch(self, stream.namespace, owner: stream.device, now: now)
    var applied = try batch.carryOut(packet.operations, newest: newest)
    applied.version = try version(for: stream)
    try statements.insert(
      AnswerColumn.self, into: "record_answers",
      [number, id.bytes, JSONValue.object(applied.receipt.members).text, now],
      onConflict: AnswerColumn.replacing(.stream, .packet))
    return applied
  }

  /// The answer that the packet got; if it is forgotten, the ids that its records have now.
  func answer(
    to id: PacketID, _ packet: RecordPacket, from stream: StreamID, number: Int64
  ) throws -> RecordApplied {
    var applied = RecordApplied(wasDuplicate: true, version: try version(for: stream))
    let text = try statements.text(
      "SELECT answer FROM record_answers WHERE stream = $1 AND packet = $2", [number, id.bytes])
    if let answer = text.flatMap({ try? JSONValue(parsing: $0) }) {
      applied.receipt = RecordReceipt(answer)
      return applied
    }
    let batch = RecordBatch(self, stream.namespace, owner: stream.device, now: 0)
    applied.receipt = try batch.ids(of: packet.operations)
    return applied
  }

  /// Answers stay longer than the ids of their packets, which leave by the time of service.
  static let forgetAnswersInPostgreSQL = """
    DELETE FROM record_answers a WHERE a.received_time < (extract(epoch FROM now()) * 1000)::bigint - 32 * 86400000::bigint
      AND NOT EXISTS (SELECT FROM packets p WHERE p.packet = encode(a.packet, 'hex')::uuid AND p.stream = a.stream)
    """
}

extension CollectedRecord {
  /// nil: it is of a namespace that no longer can be one.
  init?(_ row: SQLRow<RecordTables.ReadColumn>) {
    guard let namespace = NamespaceName(row.text(.namespace)) else { return nil }
    self.init(
      number: row.int64(.number), namespace: namespace, table: row.text(.tab), device: row.text(.device),
      id: row.text(.id), fields: Array(row.text(.fields).utf8), version: row.int64(.version),
      changedTime: row.int64(.changedTime), isNamed: row.int64(.isNamed) != 0, sequence: row.int64(.seq),
      insertSequence: row.int64(.insertSeq),
      fetch: RecordFetch(
        position: row.int64(.position), time: row.int64(.fetchedTime),
        reported: row.string(.reported).map { Array($0.utf8) }))
  }
}
