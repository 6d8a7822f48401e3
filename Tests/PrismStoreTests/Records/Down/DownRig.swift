import PrismProtocol
import PrismStore

/// Tables that the server changes over a store: `price`, `bundle` (refers to prices), `setting` and `knob` (refers to
/// settings), which both sides change.
struct DownRig {
  static let price = RecordTable(RecordTableName("price")!, direction: .down, scope: .fleet, maxRecord: 3000)
  static let bundle = RecordTable(
    RecordTableName("bundle")!, direction: .down, references: ["price": RecordTableName("price")!])
  static let setting = RecordTable(RecordTableName("setting")!, direction: .both, maxRecord: 20)
  static let knob = RecordTable(
    RecordTableName("knob")!, direction: .both, references: ["setting": RecordTableName("setting")!])

  var records: RecordRig
  var tables = [price, bundle, setting, knob]
  var clockAhead: Int64 = 0
  /// Operations that had their answer before the question; nil: it does not matter.
  var settled: Int?
  /// The store that answers; nil: it tells no identity.
  var mark: StoreMark? = StoreMark(id: 1)

  var store: ReportStore { records.store }

  init(onConflict: RecordConflict = .newest) async throws {
    records = try await RecordRig()
    tables[2].onConflict = onConflict
    tables[3].onConflict = onConflict
  }

  subscript(name: String) -> RecordTable { tables.first { $0.name.text == name }! }

  func target(_ name: String) -> DownTarget {
    var target = DownTarget(self[name], of: Rig.shop, tables: tables, clockAheadMilliseconds: clockAhead)
    (target.settledBefore, target.store) = (settled, mark)
    return target
  }

  func after(_ name: String) async -> Int64? {
    await store.records.standing(of: self[name].name, in: Rig.shop)?.after
  }

  /// Takes a whole table of records.
  @discardableResult
  func take(
    _ name: String, _ records: [DownRecord], sequence: Int64, step: Int = 100, isUnheard: Bool = false
  ) async throws -> DownOutcome {
    let content = try await store.beginTable(target(name))
    for start in stride(from: 0, to: records.count, by: step) {
      guard try await store.add(Array(records[start...].prefix(step)), sequence: sequence, to: content) else {
        return DownOutcome(.outdated)
      }
    }
    var target = target(name)
    target.isUnheard = isUnheard
    return try await store.finishTable(content, target, sequence: sequence)
  }

  /// Executes operations that follow what is there.
  func apply(
    _ name: String, _ operations: [DownOperation], to sequence: Int64? = nil, after: Int64? = nil,
    othersThrough: Int64 = .max
  ) async throws -> DownOutcome {
    let known = await self.after(name) ?? 0
    let page = DownPage(
      operations: operations, after: after ?? known, sequence: sequence ?? operations.last?.sequence ?? known,
      othersThrough: othersThrough)
    return try await store.apply(page, to: target(name))
  }

  func ids(_ name: String) async -> [String] {
    guard case .list(let records, _, false)? = await records.ask(self[name], .list(after: nil, limit: 1000))?.answer
    else { return ["?"] }
    return records.map(\.id.text)
  }

  func record(_ name: String, _ id: String) async -> StoredRecord? { await records.record(self[name], id) }
  func fields(_ name: String, _ id: String) async -> String? {
    await record(name, id).map { String(decoding: $0.fields, as: UTF8.self) }
  }

  func put(_ name: String, _ id: String, _ fields: JSONValue) async -> RecordAnswer? {
    await records.put(self[name], id, fields)
  }

  func delete(_ name: String, _ id: String) async {
    _ = await records.ask(self[name], .delete(RecordID(id)!))
  }

  func ledger(_ name: String) async -> Ledger { await records.ledger(self[name]) }

  /// Sends what waits, and gives each new record the server's id `S` and its own.
  func upload() async throws -> [RecordOperation] {
    var sent: [RecordOperation] = []
    while let packet = try await records.claim(tables: tables) {
      var receipt = RecordReceipt()
      for operation in packet.operations where operation.kind == .insert {
        receipt.ids[operation.table, default: [:]][operation.id] = RecordID("S\(operation.id)")
      }
      sent += packet.operations
      try await records.deliver(packet.id, receipt)
    }
    return sent
  }
}

extension DownRecord {
  init(_ id: String, _ fields: String, local: String? = nil, time: Int64 = 0) {
    self.init(id: RecordID(id)!, localID: local.flatMap { RecordID($0) }, fields: Array(fields.utf8), time: time)
  }
}

extension DownOperation {
  /// `fields` nil: a deletion.
  init(
    _ sequence: Int64, _ table: String, _ id: String, _ fields: String?, local: String? = nil, after: String? = nil,
    time: Int64 = 0
  ) {
    self.init(
      sequence: sequence, op: "o\(sequence)", table: RecordTableName(table)!, id: RecordID(id)!,
      localID: local.flatMap { RecordID($0) }, kind: fields == nil ? .delete : .update,
      fields: Array((fields ?? "").utf8), dependsOn: after, time: time)
  }
}
