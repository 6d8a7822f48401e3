import PrismProtocol
import PrismSQL
import PrismSQLite

/// The records that a packet's operations, or a writer's changes, meet: read together, decided one after the other in
/// memory, and written together.
struct RecordBatch {
  struct Key: Hashable {
    var table: RecordTableName
    var id: String
  }

  private struct Cell {
    /// The number of the row that is in the database; nil: there is no row.
    var stored: Int64?
    /// As it is to be. A number of 0: the database gives one.
    var record: CollectedRecord?
    var deletion: RecordDeletion?
    /// When its fields came; milliseconds since 1970.
    var receivedTime: Int64 = 0
    var isStoredDeletion = false
    var isChanged = false
  }

  private enum DeletionColumn: String, SQLiteColumn {
    case namespace, tab, device, id
    case number = "server_id"
    case isNamed, changedTime, seq
  }

  /// Of a record that has no number yet.
  private enum NewColumn: String, SQLiteColumn {
    case namespace, tab, device, id, fields, version, changedTime, receivedTime, isNamed, seq, insertSeq, reported,
      fetchedTime
  }

  private enum GivenColumn: String, SQLiteColumn {
    case tab, id
    case number = "server_id"
  }

  private static let scope = "namespace = $1 AND device = $2"

  private let tables: RecordTables
  private let namespace: NamespaceName
  private let owner: String
  /// Milliseconds since 1970.
  private let now: Int64
  private var cells: [Key: Cell] = [:]
  /// In the order in which they were met first: new records get their numbers in it.
  private var keys: [Key] = []

  init(_ tables: RecordTables, _ namespace: NamespaceName, owner: String, now: Int64) {
    (self.tables, self.namespace, self.owner, self.now) = (tables, namespace, owner, now)
  }

  private func place(_ table: RecordTableName) -> RecordPlace {
    RecordPlace(namespace: namespace, table: table, device: owner.isEmpty ? nil : owner)
  }

  // MARK: Reading

  private func find(_ keys: [Key]) throws -> [Key: (record: CollectedRecord, receivedTime: Int64)] {
    let rows = try tables.statements.rows(
      of: RecordTables.ReadColumn.self, from: "records", key: ["tab", "id"], in: keys.map { [$0.table.text, $0.id] },
      where: Self.scope, [namespace.text, owner])
    return rows.reduce(into: [:]) { found, row in
      guard let record = CollectedRecord(row), let key = Self.key(record.table, record.id) else { return }
      found[key] = (record, row.int64(.receivedTime))
    }
  }

  private static func key(_ table: String, _ id: String) -> Key? {
    RecordTableName(table).map { Key(table: $0, id: id) }
  }

  private mutating func load(_ keys: [Key], withDeletions: Bool) throws {
    var new: [Key] = []
    for key in keys where cells[key] == nil {
      cells[key] = Cell()
      new.append(key)
    }
    self.keys += new
    for (key, found) in try find(new) {
      cells[key] = Cell(stored: found.record.number, record: found.record, receivedTime: found.receivedTime)
    }
    guard withDeletions else { return }
    let rows = try tables.statements.rows(
      of: DeletionColumn.self, from: "deleted_records", key: ["tab", "id"], in: new.map { [$0.table.text, $0.id] },
      where: Self.scope, [namespace.text, owner])
    for row in rows {
      guard let key = Self.key(row.text(.tab), row.text(.id)) else { continue }
      cells[key]?.isStoredDeletion = true
      cells[key]?.deletion = RecordDeletion(
        number: row.int64(.number), isNamed: row.int64(.isNamed) != 0, changedTime: row.int64(.changedTime),
        sequence: row.int64(.seq))
    }
  }

  /// The server's ids of the records of these operations, as they are.
  func ids(of operations: [RecordOperation]) throws -> RecordReceipt {
    let made = operations.filter { $0.kind != .delete }
    let found = try find(Array(Set(made.map { Key(table: $0.table, id: $0.key) })))
    var receipt = RecordReceipt()
    for operation in made {
      guard let record = found[Key(table: operation.table, id: operation.key)] else { continue }
      receipt.ids[operation.table, default: [:]][operation.id] = RecordID(record.record.serverID)
    }
    return receipt
  }

  // MARK: Operations of a device

  /// - Parameter newest: the newest number that a device can know; nil: the server never changed a record.
  mutating func carryOut(_ operations: [RecordOperation], newest: Int64?) throws -> RecordApplied {
    try load(operations.map { Key(table: $0.table, id: $0.key) }, withDeletions: newest != nil)
    var applied = RecordApplied()
    var made: [(operation: RecordOperation, serverID: String?)] = []
    for operation in operations {
      if let message = operation.tagFault {
        applied.receipt.refused.append(.init(op: operation.op, message: message))
        continue
      }
      // A number that was never given says nothing.
      let known = operation.after.flatMap { 0...(newest ?? 0) ~= $0 ? $0 : nil } ?? 0
      let given = try carryOut(operation, known: known, &applied)
      if operation.kind != .delete { made.append((operation, given)) }
    }
    try write()
    for (operation, given) in made {
      let record = cells[Key(table: operation.table, id: operation.key)]?.record
      guard let serverID = given ?? record?.serverID else { continue }
      applied.receipt.ids[operation.table, default: [:]][operation.id] = RecordID(serverID)
    }
    return applied
  }

  /// An operation that loses gives the server's change a new number, so that the device learns it, once more if it had it.
  /// - Returns: the server's id where the record's row will not have it.
  private mutating func carryOut(
    _ operation: RecordOperation, known: Int64, _ applied: inout RecordApplied
  ) throws -> String? {
    let key = Key(table: operation.table, id: operation.key)
    var cell = cells[key] ?? Cell()
    defer { cells[key] = cell }
    let met =
      cell.record.map { ServerChange(sequence: $0.sequence, changedTime: $0.changedTime) }
      ?? cell.deletion.map { ServerChange(sequence: $0.sequence, changedTime: $0.changedTime) }
    if operation.kind == .delete, cell.record == nil { return nil }
    guard met?.yields(to: operation, known: known) ?? true else {
      applied.lost += 1
      cell.isChanged = true
      let number = try tables.next(1, for: place(operation.table))
      if cell.record == nil {
        cell.deletion?.sequence = number
        return cell.deletion.map { $0.isNamed ? operation.key : String($0.number) }
      }
      cell.record?.sequence = number
      cell.record?.fetch = RecordFetch(reported: operation.fields?.bytes)
      if operation.kind == .delete { cell.record?.insertSequence = number }
      return nil
    }
    cell.isChanged = true
    if operation.kind == .delete {
      if cell.record?.number == 0 { try give(&cell, key) }
      cell.record = nil
      return nil
    }
    let (record, deletion) = (cell.record, cell.deletion)
    cell.record = CollectedRecord(
      number: record?.number ?? deletion?.number ?? 0, namespace: namespace, table: operation.table.text, device: owner,
      id: operation.key, fields: Array((operation.fields?.text ?? "{}").utf8), version: operation.version,
      changedTime: operation.changedTime, isNamed: record?.isNamed ?? deletion?.isNamed ?? false)
    (cell.deletion, cell.receivedTime) = (nil, now)
    return nil
  }

  /// A record that is deleted in the packet that makes it has a number, too, which no other record gets.
  private mutating func give(_ cell: inout Cell, _ key: Key) throws {
    cells[key] = cell
    try write()
    cell = cells[key] ?? cell
    cell.isChanged = true
  }

  // MARK: Changes of the server's

  /// - Returns: a result each, or the first refusal; then the transaction is to be rolled back.
  mutating func make(
    _ changes: [RecordChange], in table: RecordTableName, if condition: ChangeCondition
  ) throws -> Result<[RecordChanged], RecordFailure> {
    try load(changes.map { Key(table: table, id: $0.id.text) }, withDeletions: true)
    var numbered: [Int64: Key] = [:]
    for change in changes where change.id.isNumber {
      guard let record = try tables.find(change.id, in: place(table)), !record.isNamed else { continue }
      let key = Key(table: table, id: record.id)
      try load([key], withDeletions: true)
      numbered[record.number] = key
    }
    // One block of numbers: the rows of the sequence and the table are written once.
    var last: Int64?
    var (results, keys): ([RecordChanged], [Key]) = ([], [])
    for (index, change) in changes.enumerated() {
      let key = numbered[Int64(change.id.text) ?? -1] ?? Key(table: table, id: change.id.text)
      let known = cells[key]?.record
      guard condition.holds(for: known) else { return .failure(.refused(.condition, index: index)) }
      let fields = change.fields(of: known)
      if let fields, fields.count > RecordRequest.fieldsBytesMax {
        return .failure(.refused(.tooLarge(bytes: fields.count), index: index))
      }
      if table == .tags, let fields, DeviceTags(try? JSONValue(parsing: fields)) == nil {
        return .failure(.refused(.tags, index: index))
      }
      if fields != nil, known == nil, change.id.isNumber { return .failure(.refused(.unknownNumber, index: index)) }
      keys.append(key)
      // It says the same: no device has to learn it.
      if fields == known?.fields {
        results.append(known == nil ? .absent : .stored(nil, wasMade: false))
        continue
      }
      let end = if let last { last } else { try tables.next(changes.count, for: place(table)) }
      last = end
      let number = end - Int64(changes.count - 1 - index)
      if fields == nil, known?.number == 0 { try write() }
      results.append(make(key, fields, number: number))
    }
    try write()
    if results.contains(.deleted) { try tables.forgetDeletions(of: place(table)) }
    return .success(
      zip(results, keys).map { result, key in
        if case .stored(_, let wasMade) = result { .stored(cells[key]?.record, wasMade: wasMade) } else { result }
      })
  }

  /// - Parameter number: of the change.
  private mutating func make(_ key: Key, _ fields: [UInt8]?, number: Int64) -> RecordChanged {
    var cell = cells[key] ?? Cell()
    defer { cells[key] = cell }
    (cell.isChanged, cell.receivedTime) = (true, now)
    let (known, deletion) = (cell.record, cell.deletion)
    guard let fields else {
      cell.record = nil
      cell.deletion = known.map {
        RecordDeletion(
          number: $0.number, isNamed: $0.isNamed, changedTime: max(now, $0.changedTime + 1), sequence: number)
      }
      return .deleted
    }
    if var record = known {
      record.fetch = RecordFetch(position: record.fetch.position, reported: record.fieldsThere)
      record.change(to: fields, now: now)
      record.sequence = number
      cell.record = record
      return .stored(nil, wasMade: false)
    }
    // A record that the server deleted comes back under its number.
    cell.record = CollectedRecord(
      number: deletion?.number ?? 0, namespace: namespace, table: key.table.text, device: owner, id: key.id,
      fields: fields, version: 1, changedTime: max(now, (deletion?.changedTime ?? 0) + 1),
      isNamed: deletion?.isNamed ?? true, sequence: number, insertSequence: number)
    cell.deletion = nil
    return .stored(nil, wasMade: true)
  }

  // MARK: Writing

  private mutating func write() throws {
    let changed = keys.compactMap { key in cells[key].flatMap { $0.isChanged ? (key, $0) : nil } }
    let statements = tables.statements
    for (key, cell) in changed {
      if let stored = cell.stored, stored != cell.record?.number {
        try statements.run("DELETE FROM records WHERE server_id = $1", [stored])
      }
      if cell.isStoredDeletion, cell.deletion == nil {
        try statements.run(
          "DELETE FROM deleted_records WHERE \(Self.scope) AND tab = $3 AND id = $4",
          [namespace.text, owner, key.table.text, key.id])
      }
    }
    let deletions = changed.compactMap { key, cell in cell.deletion.map { (key, $0) } }
    try statements.insert(
      DeletionColumn.self, into: "deleted_records",
      rows: deletions.map { key, deletion in
        [
          namespace.text, key.table.text, owner, key.id, deletion.number, deletion.isNamed, deletion.changedTime,
          deletion.sequence,
        ]
      }, onConflict: DeletionColumn.replacing(.namespace, .tab, .device, .id))
    let rows = changed.compactMap { _, cell in cell.record.map { ($0, cell.receivedTime) } }
    try statements.insert(
      RecordTables.Column.self, into: "records",
      rows: rows.filter { $0.0.number != 0 }.map { [$0.number] + values(of: $0, received: $1) },
      onConflict: RecordTables.Column.replacing(.number))
    try statements.insert(
      NewColumn.self, into: "records", rows: rows.filter { $0.0.number == 0 }.map { values(of: $0, received: $1) },
      returning: GivenColumn.self
    ) { row in
      guard let key = Self.key(row.text(.tab), row.text(.id)) else { return }
      cells[key]?.record?.number = row.int64(.number)
    }
    for (key, _) in changed {
      guard var cell = cells[key] else { continue }
      (cell.isChanged, cell.stored, cell.isStoredDeletion) = (false, cell.record?.number, cell.deletion != nil)
      cells[key] = cell
    }
  }

  private func values(of record: CollectedRecord, received: Int64) -> [any SQLConvertible] {
    [
      namespace.text, record.table, owner, record.id, String(decoding: record.fields, as: UTF8.self), record.version,
      record.changedTime, received, record.isNamed, record.sequence, record.insertSequence,
      record.fetch.reported.map { String(decoding: $0, as: UTF8.self) }, record.fetch.time,
    ]
  }
}
