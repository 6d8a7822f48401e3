import PrismProtocol
import PrismStore
import PrismTestSupport

/// The other end of a history.
protocol HistoryServer {
  /// Ids that its writers choose.
  var names: [RecordID] { get }
  /// Its clock.
  var now: Int64 { get }
  /// The newest number.
  var sequence: Int64 { get async throws }
  /// A second passes.
  mutating func advance()
  /// The fields by its ids.
  func rows(of table: RecordTableName) async throws -> [RecordID: JSONValue]
  mutating func put(_ table: RecordTableName, _ id: RecordID, _ fields: JSONValue) async throws
  /// With what refers to it.
  mutating func delete(_ table: RecordTableName, _ id: RecordID) async throws
  mutating func answer(_ table: RecordTableName, after: Int64?, isWhole: Bool) async throws -> [DownLine]
  mutating func take(_ packet: ClaimedPacket, sentTime: Int64) async throws -> RecordReceipt
  /// Changes before the newest ones are in no answer any more: it has the whole table.
  mutating func forget(allBut newest: Int64) async throws
  mutating func restart() async throws
  func close() async
}

/// The server of a history: its own changes, a log of them, and what devices send. It follows docs/records.md, "The answer to
/// a question".
struct DownServer: HistoryServer {
  struct Row {
    var localID: RecordID?
    var fields: JSONValue
    var time: Int64
    /// The number of its own last change; nil: the device changed it last.
    var own: Int64?
  }

  let tables: [RecordTable]
  /// Some operations wait for one of another table that they do not refer to: then an answer is executed in parts.
  private let isEntangled: Bool
  let names = (0..<4).map { RecordID("w\($0)")! }
  private(set) var now: Int64 = 1_700_000_000_000
  private var rows: [RecordTableName: [RecordID: Row]] = [:]
  private var log: [DownOperation] = []
  private(set) var sequence: Int64 = 0
  /// Older operations are not in the log any more.
  private var logStart: Int64 = 0
  /// `after` of the last question for each table.
  private var asked: [RecordTableName: Int64] = [:]
  private var answers: [PacketID: RecordReceipt] = [:]
  private var lastID = 0

  init(_ tables: [RecordTable], isEntangled: Bool = false) { (self.tables, self.isEntangled) = (tables, isEntangled) }

  func rows(of table: RecordTableName) -> [RecordID: JSONValue] { (rows[table] ?? [:]).mapValues(\.fields) }
  /// The device's names of its records.
  func localIDs(of table: RecordTableName) -> [String] { (rows[table] ?? [:]).values.compactMap { $0.localID?.text } }
  mutating func advance() { now += 1000 }
  /// Whether it took the packet.
  func hasTaken(_ packet: PacketID) -> Bool { answers[packet] != nil }
  /// Its state survives.
  mutating func restart() {}
  func close() {}

  // MARK: Its own changes

  mutating func put(_ table: RecordTableName, _ id: RecordID, _ fields: JSONValue) {
    let before = rows[table]?[id]
    rows[table, default: [:]][id] = Row(localID: before?.localID, fields: fields, time: now, own: nil)
    note(table, id, before == nil ? .insert : .update)
  }

  /// With what refers to it.
  mutating func delete(_ table: RecordTableName, _ id: RecordID) {
    guard let row = rows[table]?.removeValue(forKey: id) else { return }
    note(table, id, .delete, row.localID)
    for holder in tables where holder.direction.isPulled {
      for field in holder.references.filter({ $0.value == table }).keys {
        for (other, row) in rows[holder.name] ?? [:] where row.fields[field]?.string == id.text {
          delete(holder.name, other)
        }
      }
    }
  }

  private mutating func note(
    _ table: RecordTableName, _ id: RecordID, _ kind: RecordOperation.Kind, _ localID: RecordID? = nil
  ) {
    sequence += 1
    let row = rows[table]?[id]
    let references = tables.first { $0.name == table }!.references
    var needed = references.compactMap { field, target in
      log.last { $0.table == target && $0.id.text == row?.fields[field]?.string && $0.kind != .delete }?.op
    }
    if isEntangled, sequence % 3 == 0, let other = log.last(where: { $0.table != table }) { needed = [other.op] }
    rows[table]?[id]?.own = sequence
    log.append(
      DownOperation(
        sequence: sequence, op: "o\(sequence)", table: table, id: id, localID: row?.localID ?? localID, kind: kind,
        fields: row?.fields.bytes ?? [], dependsOn: needed.first, time: row?.time ?? now))
  }

  mutating func forget(allBut newest: Int64) {
    logStart = max(logStart, sequence - newest)
    log.removeAll { $0.sequence <= logStart }
  }

  // MARK: Questions

  mutating func answer(_ table: RecordTableName, after: Int64?, isWhole: Bool) -> [DownLine] {
    asked[table] = after ?? -1
    guard let after, after >= logStart, after <= sequence, !isWhole else {
      let records = (rows[table] ?? [:]).sorted { $0.key < $1.key }.map { id, row in
        DownLine.record(DownRecord(id: id, localID: row.localID, fields: row.fields.bytes, time: row.time))
      }
      return [.head(DownHead(isFull: true, sequence: sequence, count: records.count))] + records
    }
    let operations = log.filter { $0.table == table && $0.sequence > after }
    return [.head(DownHead(isFull: false, sequence: sequence, count: operations.count))]
      + operations.map { .operation($0) }
  }

  // MARK: Uploads

  mutating func take(_ packet: ClaimedPacket, sentTime: Int64) -> RecordReceipt {
    if let answer = answers[packet.id] { return answer }
    var receipt = RecordReceipt()
    for operation in packet.operations {
      let id = id(of: operation)
      if operation.kind != .delete { receipt.ids[operation.table, default: [:]][operation.id] = id }
      carryOut(operation, id)
    }
    answers[packet.id] = receipt
    return receipt
  }

  private mutating func id(of operation: RecordOperation) -> RecordID {
    // An id that this or another store gave says nothing: the device's own one does.
    if let known = operation.serverID, names.contains(known) { return known }
    let rows = rows[operation.table] ?? [:]
    if let known = rows.first(where: { $0.value.localID == operation.id })?.key { return known }
    if names.contains(operation.id), rows[operation.id] != nil { return operation.id }
    lastID += 1
    return RecordID("S\(lastID)")!
  }

  /// Decides between the operation and a change that the device had not asked for yet.
  private mutating func carryOut(_ operation: RecordOperation, _ id: RecordID) {
    let table = operation.table
    let seen = asked[table] ?? -1
    let unseen = log.last { $0.table == table && $0.id == id && $0.sequence > seen }
    let row = rows[table]?[id]
    if let unseen, (row?.own ?? unseen.sequence) == unseen.sequence, unseen.time >= operation.changedTime {
      // Its own change holds: the device gets it, whether it asked for it meanwhile or not.
      log.removeAll { $0.table == table && $0.id == id && $0.sequence > seen }
      if row == nil { rows[table]?[id] = nil }
      if row != nil, row?.localID == nil, operation.kind != .delete { rows[table]?[id]?.localID = operation.id }
      return note(table, id, row == nil ? .delete : .update, operation.id)
    }
    log.removeAll { $0.table == table && $0.id == id && $0.sequence > seen }
    if operation.kind == .delete {
      rows[table]?[id] = nil
    } else {
      rows[table, default: [:]][id] = Row(
        localID: row?.localID ?? operation.id, fields: operation.fields ?? .null, time: operation.changedTime, own: nil)
    }
  }
}
