import PrismProtocol
import PrismSQLite

/// Makes changes of the server's to one table, within a transaction.
struct SQLiteRecordChanges {
  private let statements: SQLiteStatements
  private let table: SQLiteRecordTable
  private let deletions: SQLiteRecordDeletions
  private let log: SQLiteRecordLog
  private let place: RecordPlace
  /// Milliseconds since 1970.
  private let now: Int64

  init(_ connection: SQLiteConnection, _ place: RecordPlace, now: Int64) {
    (self.place, self.now) = (place, now)
    statements = SQLiteStatements(connection)
    table = SQLiteRecordTable(connection: connection, statements: statements)
    deletions = SQLiteRecordDeletions(statements)
    log = SQLiteRecordLog(statements, place.namespace)
  }

  /// - Returns: a result each, or the first refusal; then the transaction is to be rolled back.
  func make(
    _ changes: [RecordChange], if condition: ChangeCondition
  ) throws(SQLiteError) -> Result<[RecordChanged], RecordFailure> {
    if let refusal = try otherOwner() { return .failure(.refused(refusal, index: 0)) }
    var results: [RecordChanged] = []
    for (index, change) in changes.enumerated() {
      switch try make(change, condition) {
      case .success(let result): results.append(result)
      case .failure(let refusal): return .failure(.refused(refusal, index: index))
      }
    }
    if results.contains(.deleted) { try log.forgetDeletions(of: place) }
    return .success(results)
  }

  func find(_ id: RecordID) throws(SQLiteError) -> CollectedRecord? {
    if id.isNumber, let number = Int64(id.text), let found = try table.find(number: number, in: place) { return found }
    return try table.find(id.text, in: place)
  }

  /// A table is the fleet's from its first record on, or the devices'.
  private func otherOwner() throws(SQLiteError) -> RecordRefusal? {
    var fleet = place
    fleet.device = nil
    let isOfFleet = try log.table(fleet) != nil
    if place.device != nil { return isOfFleet ? .isOfFleet : nil }
    if isOfFleet { return nil }
    let select = try statements.prepare(
      "SELECT 1 FROM records WHERE namespace = :namespace AND tab = :tab AND device > '' LIMIT 1")
    select.bind(":namespace", place.namespace.text)
    select.bind(":tab", place.table.text)
    return try select.hasRow() ? .isOfDevices : nil
  }

  private func make(
    _ change: RecordChange, _ condition: ChangeCondition
  ) throws(SQLiteError) -> Result<RecordChanged, RecordRefusal> {
    let known = try find(change.id)
    guard condition.holds(for: known) else { return .failure(.condition) }
    guard let fields = change.fields(of: known) else { return .success(try delete(known)) }
    guard fields.count <= RecordRequest.fieldsBytesMax else { return .failure(.tooLarge(bytes: fields.count)) }
    guard var record = known else {
      guard !change.id.isNumber else { return .failure(.unknownNumber) }
      return .success(.stored(try insert(change.id, fields), wasMade: true))
    }
    // It says the same: no device has to learn it.
    if record.fields == fields { return .success(.stored(record, wasMade: false)) }
    record.change(to: fields, now: now)
    record.sequence = try log.next(for: place)
    let update = try statements.prepare(
      """
      UPDATE records SET fields = :fields, version = :version, changed_time = :changed_time, received_time = :now, seq = :seq
      WHERE server_id = :number
      """)
    bind(update, record)
    update.bind(":number", record.number)
    try update.run()
    return .success(.stored(record, wasMade: false))
  }

  /// A record that the server deleted comes back under its id.
  private func insert(_ id: RecordID, _ fields: [UInt8]) throws(SQLiteError) -> CollectedRecord {
    let deletion = try deletions.find(id.text, in: place)
    if deletion != nil { try deletions.remove(id.text, in: place) }
    var record = CollectedRecord(id, fields, in: place, after: deletion, now: now)
    record.sequence = try log.next(for: place)
    let insert = try statements.prepare(
      """
      INSERT INTO records (server_id, namespace, tab, device, id, fields, version, changed_time, received_time, is_named, seq,
        insert_seq)
      VALUES (:number, :namespace, :tab, :device, :id, :fields, :version, :changed_time, :now, :is_named, :seq, :seq)
      RETURNING server_id
      """)
    bind(insert, record)
    insert.bind(":number", deletion?.number)
    insert.bind(":namespace", place.namespace.text)
    insert.bind(":tab", place.table.text)
    insert.bind(":device", place.owner)
    insert.bind(":id", record.id)
    insert.bind(":is_named", record.isNamed)
    record.number = try insert.firstInt() ?? 0
    return record
  }

  private func bind(_ statement: SQLiteStatement, _ record: CollectedRecord) {
    statement.bind(":fields", String(decoding: record.fields, as: UTF8.self))
    statement.bind(":version", record.version)
    statement.bind(":changed_time", record.changedTime)
    statement.bind(":now", now)
    statement.bind(":seq", record.sequence)
  }

  private func delete(_ known: CollectedRecord?) throws(SQLiteError) -> RecordChanged {
    guard let known else { return .absent }
    let delete = try statements.prepare("DELETE FROM records WHERE server_id = :number")
    delete.bind(":number", known.number)
    try delete.run()
    let deletion = RecordDeletion(
      number: known.number, isNamed: known.isNamed, changedTime: max(now, known.changedTime + 1),
      sequence: try log.next(for: place))
    try deletions.add(deletion, known.id, in: place)
    return .deleted
  }
}

extension RecordChange {
  /// The record's fields after the change; nil: it is deleted.
  func fields(of record: CollectedRecord?) -> [UInt8]? {
    switch action {
    case .put(let fields): return fields.bytes
    case .patch(let patch):
      let before = record.flatMap { try? JSONValue(parsing: $0.fields) } ?? .object([])
      return before.merged(with: patch).bytes
    case .delete: return nil
    }
  }
}

extension CollectedRecord {
  /// A new record of the server's, or one that it deleted.
  init(_ id: RecordID, _ fields: [UInt8], in place: RecordPlace, after deletion: RecordDeletion?, now: Int64) {
    self.init(
      number: deletion?.number ?? 0, namespace: place.namespace, table: place.table.text, device: place.owner,
      id: id.text, fields: fields, version: 1, changedTime: max(now, (deletion?.changedTime ?? 0) + 1),
      isNamed: deletion?.isNamed ?? true)
  }

  /// The server changes it, and knows its state: so the change is later, also if the device's clock is ahead.
  mutating func change(to fields: [UInt8], now: Int64) {
    self.fields = fields
    version += 1
    changedTime = max(now, changedTime + 1)
  }
}
