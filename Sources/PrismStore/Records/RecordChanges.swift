import PrismBase
import PrismProtocol
import PrismSQLite

/// Carries out what programs ask for: puts, patches, deletions, reading. A change that changes nothing writes nothing.
struct RecordChanges: StoreOperations {
  let transaction: StoreTransaction
  /// The user who asks; nil: the daemon itself.
  private let owner: RowOwner?

  init(_ transaction: StoreTransaction, for owner: RowOwner? = nil) {
    (self.transaction, self.owner) = (transaction, owner)
  }

  /// The answer counts once the transaction is committed.
  func carryOut(_ request: RecordRequest) throws(SQLiteError) -> RecordOutcome {
    switch request.action {
    case .put(let id, let fields): try change(id, request) { _ in fields }
    case .patch(let id, let patch): try change(id, request) { ($0 ?? .object([])).merged(with: patch) }
    case .delete(let id): try delete(id, request)
    case .get(let id): RecordOutcome(.record(try record(id, request)))
    case .list(let after, let limit): RecordOutcome(try list(after, limit, request))
    case .watch: RecordOutcome(.watching(request.namespace, request.table.name, generation: generation(request)))
    }
  }

  // MARK: Changing

  /// - Parameter fields: the new ones, from those before; nil: there is no such record.
  private func change(
    _ id: RecordID, _ request: RecordRequest, _ fields: (JSONValue?) -> JSONValue
  ) throws(SQLiteError) -> RecordOutcome {
    let known = access.table(request.table.name, of: request.namespace)
    let stored = if let known { try access.record(id, in: known) } else { RecordRow?.none }
    let before = stored.flatMap { $0.isThere ? try? JSONValue(parsing: $0.fields) : nil }
    let after = fields(before)
    if let stored, let before, before.says(the: after) { return RecordOutcome(.stored(version: stored.version)) }
    if let refusal = Self.mismatch(stored, request) { return RecordOutcome(.refused(refusal)) }
    let bytes = after.bytes
    guard bytes.count <= RecordRequest.fieldsBytesMax else {
      return RecordOutcome(.refused(Self.tooLarge(bytes.count)))
    }
    if let refusal = try refusal(of: after, request) { return RecordOutcome(.refused(refusal)) }
    if stored == nil, let known, try !hasRoom(known, request.table) {
      return RecordOutcome(.refused(Self.full(request.table)))
    }
    let table = try access.number(of: request.table.name, in: request.namespace)
    var record = stored ?? RecordRow(table: table, id: id, fields: [], owner: owner)
    record.fields = bytes
    try apply(to: &record) { $0.put() }
    return RecordOutcome(.stored(version: record.version), hasChanged: true)
  }

  private func hasRoom(_ number: Int, _ table: RecordTable) throws(SQLiteError) -> Bool {
    let places = SharedPlaces(most: table.maxRecord)
    return try places.hasRoom(taken: state.records[reading: number].records) { () throws(SQLiteError) in
      try owner.map { (owner) throws(SQLiteError) in try access.count(of: owner, in: number, limit: places.share) }
        ?? .max
    }
  }

  private func delete(_ id: RecordID, _ request: RecordRequest) throws(SQLiteError) -> RecordOutcome {
    let known = access.table(request.table.name, of: request.namespace)
    let stored = if let known { try access.record(id, in: known) } else { RecordRow?.none }
    guard let record = stored, record.isThere else { return RecordOutcome(.stored(version: nil)) }
    if let refusal = Self.mismatch(stored, request) { return RecordOutcome(.refused(refusal)) }
    try delete(record)
    return RecordOutcome(.stored(version: nil), hasChanged: true)
  }

  /// Of a record that no server ever heard of, nothing stays. One that gave it an id may have it again, from a backup.
  func delete(_ record: RecordRow) throws(SQLiteError) {
    var record = record
    if record.standing.sent != nil || record.standing.isKnown {
      try apply(to: &record) { _ = $0.delete() }
    } else if record.serverID != nil {
      try apply(to: &record) { $0 = .ofDeletion }
    } else {
      count(record.id, record.standing, nil, in: record.table)
      try access.remove(record)
    }
  }

  private func apply(to record: inout RecordRow, _ change: (inout RecordStanding) -> Void) throws(SQLiteError) {
    let before = record.number == 0 ? nil : record.standing
    // A new record begins as one that waits.
    if before != nil { change(&record.standing) }
    if before?.isWaiting != true { record.position = state.records.nextPosition() }
    record.version += 1
    let now = transaction.unixMilliseconds
    // A change of what the server sent is later than that, by any clock.
    record.changedTime = state.records.down[record.table] == nil ? now : max(now, record.changedTime + 1)
    record.clock = nil
    record.refusal = nil
    count(record.id, before, record.standing, in: record.table)
    try access.write(&record)
  }

  /// Counts one change. A change that waited before is merged into it.
  private func count(_ id: RecordID, _ before: RecordStanding?, _ after: RecordStanding?, in table: Int) {
    state.records[table].ledger.stored += 1
    state.records.change(id, in: table)
    if before?.isWaiting == true { state.records[table].ledger.move(1, from: .waiting, to: .removed) }
    state.records[table].ledger[after?.isWaiting == true ? .waiting : .removed] += 1
  }

  // MARK: Refusals

  /// nil where the condition holds. A change that was made already is not judged, so that it may be asked for again.
  private static func mismatch(_ stored: RecordRow?, _ request: RecordRequest) -> Refusal? {
    let version = stored.flatMap { $0.isThere ? $0.version : nil }
    guard let condition = request.condition, !condition.holds(version) else { return nil }
    let found = version.map { "the record has version \($0)" } ?? "there is no such record"
    return Refusal(.versionMismatch, "\(found), and the change is for \(condition); read it, then change it again")
  }

  /// A reference must name a record of its table, or one that is being deleted.
  private func refusal(of fields: JSONValue, _ request: RecordRequest) throws(SQLiteError) -> Refusal? {
    for (field, name) in request.table.references.sorted(by: { $0.key < $1.key }) {
      guard let value = fields[field], !value.isNull else { continue }
      guard let text = value.string, let id = RecordID(text) else {
        return Refusal(.badRequest, "`fields.\(field)` refers to the table \(name): give a record's id, or null")
      }
      let table = access.table(name, of: request.namespace)
      let isThere = if let table { try access.holds(id, in: table) } else { false }
      guard isThere else {
        return Refusal(
          .referenceMissing, "`fields.\(field)` refers to a record that is not in the table \(name); put that one first"
        )
      }
    }
    return nil
  }

  private static func tooLarge(_ bytes: Int) -> Refusal {
    Refusal(
      .badRequest, "`fields` would have \(bytes) bytes; at most \(RecordRequest.fieldsBytesMax) are taken")
  }

  private static func full(_ table: RecordTable) -> Refusal {
    Refusal(
      .tableFull,
      "the table \(table.name) holds \(table.maxRecord) records, as its maxRecord allows; delete some, or raise it",
      retryMilliseconds: 10_000)
  }

  // MARK: Reading

  /// 0 before anything was stored in the table.
  private func generation(_ request: RecordRequest) -> Int64 {
    access.table(request.table.name, of: request.namespace).map { state.records[reading: $0].generation } ?? 0
  }

  private func record(_ id: RecordID, _ request: RecordRequest) throws(SQLiteError) -> StoredRecord? {
    guard let table = access.table(request.table.name, of: request.namespace) else { return nil }
    if request.table.direction == .down {
      return try rows.find(id, in: state.records.down[table]?.content ?? 0)?.value
    }
    guard let record = try access.record(named: id, in: table), record.isThere else { return nil }
    return record.value
  }

  private func list(_ after: RecordID?, _ limit: Int, _ request: RecordRequest) throws(SQLiteError) -> RecordAnswer {
    guard let table = access.table(request.table.name, of: request.namespace) else {
      return .list([], generation: 0, isMore: false)
    }
    let page: (records: [StoredRecord], isMore: Bool)
    if request.table.direction == .down {
      page = try rows.page(after: after, limit: limit, in: state.records.down[table]?.content ?? 0)
    } else {
      let rows = try transaction.statement(RecordStatement.page).bind([":tab": table, ":after": after?.text ?? ""])
      page = try access.page(rows, limit: limit) { (row: RecordRow) in row.value }
    }
    return .list(page.records, generation: state.records[reading: table].generation, isMore: page.isMore)
  }
}
