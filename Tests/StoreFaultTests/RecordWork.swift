import PrismProtocol
import PrismStore

/// Records in a fault run: puts and deletions of a few records, and packets of their changes, which are handed out, confirmed,
/// refused, split and released.
struct RecordWork {
  private static let table = RecordTable(RecordTableName("part")!)
  private static let idCount = 9

  /// By record: the number of its newest put that was answered as stored, and of which no deletion was begun since.
  private(set) var stored: [Int: Int] = [:]
  /// Records of which the newest answered change is a deletion, and of which no put was begun since.
  private(set) var deleted: Set<Int> = []
  /// The lines of packets that were handed out, and that were not begun to be settled.
  private(set) var frozen: [PacketID: [UInt8]] = [:]
  private var window: [ClaimedPacket] = []
  private var next = 1
  /// A table of the server, in the same database.
  private(set) var down = DownWork()

  /// One round. - Parameter onProgress: called before something may change, and after it was answered.
  mutating func step(_ store: ReportStore, round: Int, onProgress: (RecordWork) -> Void) async {
    await put(store, next % Self.idCount, onProgress)
    if round % 2 == 1 { await put(store, (next * 5) % Self.idCount, onProgress) }
    if round % 4 == 3 { await delete(store, round % Self.idCount, onProgress) }
    if round % 3 == 1 { await deliver(store, onProgress) }
    var (work, known) = (down, self)
    await work.step(store, round: round) {
      known.down = $0
      onProgress(known)
    }
    down = work
  }

  // MARK: Changes

  private mutating func put(_ store: ReportStore, _ record: Int, _ onProgress: (RecordWork) -> Void) async {
    let number = next
    next += 1
    deleted.remove(record)
    onProgress(self)
    let fields: JSONValue = ["n": .int(number), "filler": .string(String(repeating: "x", count: number * 37 % 700))]
    guard await ask(store, .put(Self.id(record), fields)) else { return }
    stored[record] = number
    onProgress(self)
  }

  private mutating func delete(_ store: ReportStore, _ record: Int, _ onProgress: (RecordWork) -> Void) async {
    stored[record] = nil
    onProgress(self)
    guard await ask(store, .delete(Self.id(record))) else { return }
    deleted.insert(record)
    onProgress(self)
  }

  private static func id(_ record: Int) -> RecordID { RecordID("r\(record)")! }

  private func ask(_ store: ReportStore, _ action: RecordRequest.Action) async -> Bool {
    guard case .stored? = await Self.answer(store, action) else { return false }
    return true
  }

  private static func answer(_ store: ReportStore, _ action: RecordRequest.Action) async -> RecordAnswer? {
    var batch = Reports.batch(0..<0)
    batch.record = RecordRequest(namespace: Reports.namespace, table: table, action: action, bytes: 100)
    guard case .committed(let outcomes) = await store.append([batch]) else { return nil }
    return outcomes.first?.record?.answer
  }

  // MARK: Packets

  /// Hands out two packets. Of those in the window one is confirmed, with a change refused, and one is split or released.
  private mutating func deliver(_ store: ReportStore, _ onProgress: (RecordWork) -> Void) async {
    let bound = await store.records.bound
    let claims = (0..<2).map { _ in
      var claim = Reports.claim(3)
      (claim.kind, claim.records) = (.records, RecordClaim(tables: [Self.table], bound: bound))
      return claim
    }
    guard let claimed = try? await store.turn(UploadCommit(claims: claims)) else { return }
    window += claimed.compactMap { $0 }
    frozen = Dictionary(window.map { ($0.id, $0.metas) }, uniquingKeysWith: { _, last in last })
    onProgress(self)
    guard window.count >= 3 else { return }
    let (confirmed, other) = (window.removeFirst(), window.removeFirst())
    (frozen[confirmed.id], frozen[other.id]) = (nil, nil)
    onProgress(self)
    var receipt = RecordReceipt(ids: [Self.table.name: [:]])
    for record in 0..<Self.idCount { receipt.ids[Self.table.name]?[Self.id(record)] = RecordID("s\(record)") }
    if confirmed.itemCount > 1 { receipt.refused = [.init(op: "\(confirmed.id).0", message: "no")] }
    _ = try? await store.turn(
      UploadCommit(
        dispositions: [
          Disposition.delivered(confirmed.id, receipt: Reports.receipt).with(receipt),
          next % 2 == 0 ? .released(other.id) : .dead(other.id, cause: Self.cause),
        ]))
  }

  private static let cause = Disposition.DeadCause(status: 400, message: "no", unixMilliseconds: 1, attempts: 1)

  // MARK: After the fault

  /// The fault of the records of `store`; nil: they are sound.
  /// - Parameter isSalvaged: the database is another one: packets in flight are made again, and a deleted record may be back.
  func loss(in store: ReportStore, isSalvaged: Bool = false) async throws -> String? {
    for (record, number) in stored {
      guard case .record(let found?)? = await Self.answer(store, .get(Self.id(record))) else {
        return "record \(record) is lost, put \(number) was answered"
      }
      let held = try JSONValue(parsing: found.fields)["n"]?.int ?? 0
      if held < number { return "record \(record) is put \(held), put \(number) was answered" }
    }
    for table in await store.records.tables(of: Reports.namespace) where !table.ledger.isBalanced {
      return "the ledger of records: \(table.ledger)"
    }
    if isSalvaged { return nil }
    if let loss = try await down.loss(in: store) { return "a table of the server: \(loss)" }
    for record in deleted {
      guard case .record(nil)? = await Self.answer(store, .get(Self.id(record))) else {
        return "record \(record) is back, its deletion was answered"
      }
    }
    for (packet, lines) in frozen {
      guard let again = try await store.read(packet) else { return "a packet of records is not in flight any more" }
      if again.metas != lines { return "a packet of records has other lines than were sent" }
    }
    return nil
  }
}
