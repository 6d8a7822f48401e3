import PrismProtocol
import PrismStore

/// Tables of records over a store: `part`, `suit` (refers to parts, and to suits), and requests to them.
struct RecordRig {
  static let part = RecordTable(RecordTableName("part")!, maxRecord: 50)
  static let suit = RecordTable(
    RecordTableName("suit")!, references: ["part": RecordTableName("part")!, "peer": RecordTableName("suit")!])
  static let tables = [part, suit]

  let rig = Rig()
  private var held: ReportStore?
  var store: ReportStore { held! }

  /// Its id.
  var boot = "1"

  init() async throws { held = try await rig.open { [boot] in $0.bootID = boot } }

  /// Ends the store and opens it again. - Parameter isKill: with the files that a `kill -9` leaves.
  mutating func restart(isKill: Bool = false, isReady: Bool = true) async throws {
    if isKill { rig.keepAsKilled() }
    await store.close()
    held = nil  // it holds the folder
    if isKill { rig.restoreKilled() }
    held = try await rig.open { [boot] in $0.bootID = boot }
    if isReady { await store.markReady() }
  }

  /// Asks as the ingest socket does.
  func ask(_ table: RecordTable, _ action: RecordRequest.Action) async -> RecordOutcome? {
    var batch = rig.batch([])
    batch.record = RecordRequest(namespace: Rig.shop, table: table, action: action, bytes: 100)
    guard case .committed(let outcomes) = await store.append([batch]) else { return nil }
    return outcomes.first?.record
  }

  func put(_ table: RecordTable, _ id: String, _ fields: JSONValue) async -> RecordAnswer? {
    await ask(table, .put(RecordID(id)!, fields))?.answer
  }

  func record(_ table: RecordTable, _ id: String) async -> StoredRecord? {
    guard case .record(let record)? = await ask(table, .get(RecordID(id)!))?.answer else { return nil }
    return record
  }

  /// Takes a packet of waiting changes.
  func claim(items: Int = 100, tables: [RecordTable] = tables, bound: Int64? = nil) async throws -> ClaimedPacket? {
    var claim = rig.claim(Rig.shop, .records, items: items)
    let newest = await store.records.bound
    claim.records = RecordClaim(tables: tables, bound: bound ?? newest)
    return try await store.turn(UploadCommit(claims: [claim])).first ?? nil
  }

  func settle(_ disposition: Disposition) async throws {
    _ = try await store.turn(UploadCommit(dispositions: [disposition]))
  }

  /// The server took the packet.
  func deliver(_ id: PacketID, _ receipt: RecordReceipt = RecordReceipt()) async throws {
    let taken = Disposition.Receipt(unixMilliseconds: 1, attempts: 1, wasDuplicate: false)
    try await settle(Disposition.delivered(id, receipt: taken).with(receipt))
  }

  func ledger(_ table: RecordTable) async -> Ledger {
    await store.records.tables(of: Rig.shop).first { $0.name == table.name }?.ledger ?? Ledger()
  }
}

extension ClaimedPacket {
  var operations: [RecordOperation] {
    metas.split(separator: UInt8(ascii: "\n")).compactMap { RecordOperation(line: Array($0)) }
  }
  /// `insert part/a`, for each operation.
  var words: [String] { operations.map { "\($0.kind.name) \($0.table)/\($0.id)" } }
}
