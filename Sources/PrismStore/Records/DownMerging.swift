import PrismProtocol
import PrismSQLite

/// Brings the server's changes to the records of a `both` table, and decides conflicts (docs/records.md, "Both sides").
struct DownMerging: StoreOperations {
  enum Result {
    case done
    /// These ids are gone here: records that refer to them go, too.
    case gone(Set<RecordID>)
    case stopped(DownOutcome.End)
  }

  let transaction: StoreTransaction
  private let target: DownTarget
  /// The number in `record_tables`.
  private let table: Int
  private(set) var clashes: [RecordClash] = []

  init(_ transaction: StoreTransaction, _ target: DownTarget, table: Int) {
    (self.transaction, self.target, self.table) = (transaction, target, table)
  }

  /// The one of this id, or the one of that name that the server has not named yet.
  private func find(_ id: RecordID, _ localID: RecordID?) throws(SQLiteError) -> RecordRow? {
    if let record = try access.record(serverID: id, in: table), record.standing.isKnown || localID == nil {
      return record
    }
    for name in [localID, id].compactMap(\.self) {
      if let record = try access.record(name, in: table), record.serverID == nil || !record.standing.isKnown {
        return record
      }
    }
    return nil
  }

  // MARK: Inserts and updates

  /// - Parameter isSnapshot: of a whole table, which also names records that the server did not change.
  mutating func put(_ change: DownRecord, isSnapshot: Bool) throws(SQLiteError) -> Result {
    guard let fields = try? JSONValue(parsing: change.fields) else { return .stopped(.unreadable) }
    let base = Self.base(fields)
    guard var record = try find(change.id, change.localID) else { return try insert(change, fields, base, isSnapshot) }
    guard record.standing.sent == nil else { return .stopped(.inFlight) }
    if isSnapshot, record.serverID == change.id, record.base == base, record.standing.isKnown,
      record.standing.state != .clean
    {
      return .done
    }
    let before = record
    let merge = record.standing.merge(
      .update, isSame: try isSame(before, fields), keepsLocal: keepsLocal(before, change.time))
    (record.serverID, record.base) = (change.id, base)
    if merge.takesRemote {
      guard before.standing != record.standing || before.serverID != change.id || before.fields != fields.bytes else {
        return .done
      }
      (record.fields, record.changedTime, record.clock, record.refusal) = (fields.bytes, here(change.time), nil, nil)
      record.version += 1
    } else {
      hold(&record, after: change.time)
    }
    if merge.isConflict {
      note(before, keptLocal: !merge.takesRemote, remote: fields.bytes, at: change.time)
    }
    count(record.id, before.standing, record.standing)
    try access.write(&record)
    return .done
  }

  private func insert(
    _ change: DownRecord, _ fields: JSONValue, _ base: Int64, _ isSnapshot: Bool
  ) throws(SQLiteError) -> Result {
    guard isSnapshot || state.records[reading: table].records < target.table.maxRecord else {
      return .stopped(.tableFull)
    }
    var record = RecordRow(table: table, id: try freeID(for: change), fields: fields.bytes)
    (record.standing, record.serverID, record.base) = (.ofServer, change.id, base)
    (record.version, record.changedTime) = (1, here(change.time))
    state.records.change(record.id, in: table)
    try access.write(&record)
    return .done
  }

  /// The id for programs: the local one, or the server's. If another record has it, `~` goes before it.
  private func freeID(for change: DownRecord) throws(SQLiteError) -> RecordID {
    var wanted = [change.localID, change.id].compactMap(\.self)
    while let id = wanted.first {
      wanted.removeFirst()
      if try access.record(id, in: table) == nil { return id }
      if wanted.isEmpty, let next = RecordID("~" + id.text.prefix(RecordID.bytesMax - 1)) { wanted = [next] }
    }
    throw .invalidContent
  }

  /// The record came down, and no program here gave its id.
  static func isNamedByServer(_ record: RecordRow) -> Bool {
    record.id == record.serverID || record.id.text.hasPrefix("~")
  }

  // MARK: Deletions

  /// - Parameter time: nil if the server does not tell it.
  mutating func delete(_ id: RecordID, _ localID: RecordID?, at time: Int64?) throws(SQLiteError) -> Result {
    guard let record = try find(id, localID) else { return .done }
    return try delete(record, at: time)
  }

  /// A deletion of a record that comes back waits as any other change does.
  func keep(_ id: RecordID, _ localID: RecordID?) throws(SQLiteError) -> Result {
    try find(id, localID)?.standing.sent == nil ? .done : .stopped(.inFlight)
  }

  mutating func delete(_ before: RecordRow, at time: Int64?) throws(SQLiteError) -> Result {
    guard before.standing.sent == nil else { return .stopped(.inFlight) }
    var record = before
    let merge = record.standing.merge(.delete, isSame: false, keepsLocal: keepsLocal(before, time))
    if merge.isConflict { note(before, keptLocal: !merge.takesRemote, remote: nil, at: time) }
    if merge.isGone {
      count(before.id, before.standing, nil)
      try access.remove(before)
      return .gone(Set([before.id, before.knownID]))
    }
    guard merge.isConflict else { return .done }
    (record.serverID, record.base) = (nil, nil)
    if let time { hold(&record, after: time) }
    try access.write(&record)
    return .done
  }

  // MARK: Conflicts

  /// A deletion of which the server does not tell the time loses against a change, unless the server's changes always win.
  private func keepsLocal(_ record: RecordRow, _ time: Int64?) -> Bool {
    let here = record.changedTime - (record.clock == nil ? target.clockAheadMilliseconds : 0)
    // As a server had it: the store that answers may have an older one, and neither is a change that was made here.
    if record.standing.state == .insert, let base = record.base, let fields = try? JSONValue(parsing: record.fields),
      base == Self.base(fields)
    {
      return here > time ?? .min
    }
    return target.table.onConflict.keepsLocal(changedHere: here, changedThere: time ?? .min)
  }

  /// The change that was made here is sent as one that was made later than the server's, so that it holds there, too.
  private func hold(_ record: inout RecordRow, after time: Int64) {
    let (latest, overflows) = here(time).addingReportingOverflow(1)
    if overflows { return }
    if record.clock == nil {
      record.changedTime = max(record.changedTime, latest)
    } else if record.changedTime <= time {
      (record.changedTime, record.clock) = (latest, nil)
    }
  }

  /// A time of the server's by the clock here. All times of records are by this one clock: the receiver takes its error off those
  /// that it is sent.
  private func here(_ time: Int64) -> Int64 {
    let (here, overflows) = time.addingReportingOverflow(target.clockAheadMilliseconds)
    return overflows ? time : here
  }

  private mutating func note(_ record: RecordRow, keptLocal: Bool, remote: [UInt8]?, at time: Int64?) {
    if keptLocal { state.records.down[table]?.keptLocal += 1 } else { state.records.down[table]?.keptRemote += 1 }
    guard clashes.count < DownOutcome.clashesMax else { return }
    clashes.append(
      RecordClash(
        table: target.table.name, id: record.id, keptLocal: keptLocal, local: record.isThere ? record.fields : nil,
        remote: remote, localTime: record.changedTime, remoteTime: time))
  }

  /// A change that waited and is lost is merged into the server's.
  private func count(_ id: RecordID, _ before: RecordStanding, _ after: RecordStanding?) {
    state.records.change(id, in: table)
    if before.isWaiting, after?.isWaiting != true {
      state.records[table].ledger.move(1, from: .waiting, to: .removed)
    }
  }

  // MARK: Fields

  /// Whether the server has the fields that are here, with its own ids in place of references.
  private func isSame(_ record: RecordRow, _ fields: JSONValue) throws(SQLiteError) -> Bool {
    guard record.isThere, let members = (try? JSONValue(parsing: record.fields))?.object else { return false }
    let resolved = try members.map { (member) throws(SQLiteError) -> JSONValue.Member in
      guard let other = try access.target(of: member, target.table, in: target.namespace) else { return member }
      return .init(member.key, .string(other.knownID.text))
    }
    return fields.says(the: .object(resolved))
  }

  /// Tells whether the server has other fields than before.
  static func base(_ fields: JSONValue) -> Int64 {
    var sum = RecordChecksum()
    sum.add(fields.sorted.bytes)
    return sum.value
  }
}

extension JSONValue {
  /// The members of all objects by their keys.
  fileprivate var sorted: JSONValue {
    switch self {
    case .object(let members):
      .object(members.map { Member($0.key, $0.value.sorted) }.sorted { $0.key < $1.key })
    case .array(let elements): .array(elements.map(\.sorted))
    case .null, .bool, .number, .string: self
    }
  }
}
