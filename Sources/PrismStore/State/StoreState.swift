import PrismProtocol
import PrismSQLite

/// The known state of the whole database, in memory, without its rows. It is read from the database at start, and again
/// after a transaction failed. There is one of it for an open database: to copy it would touch each of its parts.
final class StoreState {
  private(set) var names = Names()
  /// By `QueueID.index`.
  private var queues: [QueueState] = []
  /// Unique in the database, and never used again: gaps are left by transactions that failed.
  var nextSequence: Int64 = 1
  var nextContext: Int64 = 1
  /// The bytes that users hold, by namespace. Missing until a quota needs them.
  var shares: [Int: UserShares] = [:]
  var contexts = ContextCache()
  var repeats = RepeatedRows()
  /// The content of notes, by namespace: counts of reports that filters kept from becoming rows, of triggers and of rings.
  /// Windows that are open have their keys, and triggers of a server their names.
  var counts:
    (
      filtered: [Int: FilterCounts], triggers: [Int: [String: TriggerState]], windows: [Int: [String: OpenWindow]],
      rings: [Int: RingHour], serverTriggers: [Int: [String: ServerTrigger]], memory: MemoryState
    ) = ([:], [:], [:], [:], [:], MemoryState())
  var apps = AppUpdateState()
  var salvage: SalvageProgress
  /// `client_ids` has ids of unknown users: see `ClientIDKey`. `known`: by a namespace's queue of metas, once they are counted.
  var clientIDs: (hasOwnerless: Bool, known: [QueueID: KnownIDs]) = (false, [:])
  var records: RecordsState
  /// Of rings in memory.
  var memory: MemoryState {
    get { counts.memory }
    set { counts.memory = newValue }
  }

  /// For a transaction that is rolled back.
  init(copying other: StoreState) {
    (names, queues, nextSequence, nextContext) = (other.names, other.queues, other.nextSequence, other.nextContext)
    (shares, contexts, repeats, counts) = (other.shares, other.contexts, other.repeats, other.counts)
    (apps, salvage, clientIDs, records) = (other.apps, other.salvage, other.clientIDs, other.records)
  }

  /// Reads everything. - Throws: `isCorruption` also if values contradict each other.
  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    salvage = try SalvageProgress(connection)
    records = try RecordsState(connection)
    try readNames(connection)
    try readLedgers(connection)
    try readPackets(connection)
    try countClaimed()
    try readFiltered(connection)
    try readReleases(connection)
    let floors = try NumberFloors(connection)
    names.floors = floors
    clientIDs.hasOwnerless = try connection.hasOwnerlessIDs()
    try readMemory(connection)
    nextContext = max(floors.context, try connection.firstInt("SELECT max(id) + 1 FROM contexts") ?? 1)
  }

  /// Above the number of every record of rows that may leave.
  var nextRelease: Int64 { (queues.lazy.flatMap(\.releases).map(\.number).max() ?? 0) + 1 }

  subscript(queue: QueueID) -> QueueState {
    get { queues[queue.index] }
    _modify { yield &queues[queue.index] }
  }

  func add(_ namespace: NamespaceName, number: Int) {
    names.add(namespace, number: number)
    let missing = (number + 1) * RowKind.reports.count * 2 - queues.count
    if missing > 0 { queues.append(contentsOf: repeatElement(QueueState(), count: missing)) }
  }

  func add(_ type: ReportType, number: Int64) { names.add(type, number: number) }

  /// nil for a namespace that never stored anything.
  func queue(_ namespace: NamespaceName, _ kind: RowKind) -> QueueID? {
    names.number(of: namespace).map { QueueID(namespace: $0, kind: kind) }
  }

  /// Reports in open windows of `reduce`, which no row has yet.
  func openReports(of namespace: NamespaceName) -> Int {
    let windows = names.number(of: namespace).flatMap { counts.windows[$0] } ?? [:]
    return windows.values.reduce(0) { $0 + $1.count }
  }

  func hasWaiting(_ namespace: NamespaceName, _ kind: RowKind) -> Bool {
    queue(namespace, kind).map { self[$0].claimable > 0 } ?? false
  }

  /// Rows of any queue wait, are in flight, kept or dead letters.
  var holdsRows: Bool {
    queues.contains { $0.ledger.unsent + $0.ledger[.dead] + $0.ledger[.kept] > 0 }
  }

  /// Of delivered rows that are still in their tables (`RowSegment`), of all queues.
  var spentBytes: Int { queues.reduce(0) { $0 + $1.segments.spentBytes } }

  var queueIDs: [QueueID] { names.namespaces.keys.flatMap { queues(of: $0) } }

  /// The stored rows that each queue's ledger counts on the disk.
  var storedCounts: [QueueID: Int] {
    names.namespaces.keys.flatMap { QueueID.all(of: $0) }
      .reduce(into: [:]) { counts, queue in counts[queue] = self[queue].ledger.stored }
  }

  /// With those of the ring in memory, if it has or had rows.
  func queues(of namespace: Int) -> [QueueID] {
    let queues = QueueID.all(of: namespace)
    return usesMemory(namespace) ? queues + queues.map(\.inMemory) : queues
  }

  func usesMemory(_ namespace: Int) -> Bool {
    memory.isAttached && self[QueueID(namespace: namespace, kind: .meta, isInMemory: true)].lastSequence > 0
  }

  /// Of the rows on the disk and in memory. A report that was lost with the power was overwritten, in the end.
  func ledger(_ queue: QueueID) -> Ledger {
    var (sum, inMemory) = (self[queue].ledger, self[queue.inMemory].ledger)
    guard inMemory.stored > 0 else { return sum }
    inMemory.move(inMemory[.lostWithPower], from: .lostWithPower, to: .overwritten)
    sum.stored += inMemory.stored
    for account in Ledger.Account.allCases { sum[account] += inMemory[account] }
    return sum
  }

  func find(_ packet: PacketID) -> (queue: QueueID, place: Int)? {
    for number in names.namespaces.keys {
      for kind in RowKind.reports {
        let queue = QueueID(namespace: number, kind: kind)
        if let place = queues[queue.index].packets.firstIndex(where: { $0.id == packet }) { return (queue, place) }
      }
    }
    return nil
  }
}

// MARK: From the database
extension StoreState {
  private func readNames(_ connection: SQLiteConnection) throws(SQLiteError) {
    for table in [NameRecord.Table.namespaces, .types] {
      let select = try connection.prepare("SELECT \(NameRecord.Column.list) FROM \(table.rawValue)")
      try select.forEachRow(of: NameRecord.Column.self) { (row) throws(SQLiteError) in
        guard let record = NameRecord(row, in: table) else { throw .invalidContent }
        switch table {
        case .namespaces:
          guard let name = NamespaceName(record.name), QueueID.namespaces.contains(Int(record.number)) else {
            throw .invalidContent
          }
          add(name, number: Int(record.number))
        case .types:
          guard let type = ReportType(record.name) else { throw .invalidContent }
          add(type, number: record.number)
        }
      }
    }
  }

  private func readLedgers(_ connection: SQLiteConnection) throws(SQLiteError) {
    for record in try connection.records(of: LedgerRecord.self, from: "ledger") {
      guard names.namespaces[record.queue.namespace] != nil else { throw .invalidContent }
      self[record.queue] = QueueState(record)
      nextSequence = max(nextSequence, record.lastSequence + 1)
    }
  }

  private func readMemory(_ connection: SQLiteConnection) throws(SQLiteError) {
    memory.notes = try connection.memoryNotes()
    memory.isAttached = try connection.firstInt("SELECT 1 FROM pragma_database_list WHERE name = 'mem'") != nil
    guard memory.isAttached else {
      for (namespace, note) in memory.notes where names.namespaces[namespace] != nil {
        for queue in QueueID.all(of: namespace) { self[queue.inMemory].ledger = note.ledger(queue.kind) }
        nextSequence = max(nextSequence, note.sequenceEnd)
      }
      return
    }
    for record in try connection.records(of: LedgerRecord.self, from: "mem.ledger") {
      guard names.namespaces[record.queue.namespace] != nil else { continue }
      self[record.queue.inMemory] = QueueState(record)
      nextSequence = max(nextSequence, record.lastSequence + 1)
    }
  }

  private func readFiltered(_ connection: SQLiteConnection) throws(SQLiteError) {
    for note in try connection.notes("key = '\(FilterCounts.key)'") {
      counts.filtered[note.namespace] = FilterCounts(note: note.value)
    }
    for note in try connection.notes("key = '\(RingHour.key)'") {
      counts.rings[note.namespace] = RingHour(note: note.value)
    }
  }

  private func readReleases(_ connection: SQLiteConnection) throws(SQLiteError) {
    for release in try connection.records(of: ReleaseRecord.self, from: "released ORDER BY number") {
      guard names.namespaces[release.queue.namespace] != nil else { throw .invalidContent }
      self[release.queue].releases.append(release)
    }
    for note in try connection.notes("key GLOB '\(TriggerState.keyPrefix)*'") {
      let name = String(note.key.dropFirst(TriggerState.keyPrefix.count))
      counts.triggers[note.namespace, default: [:]][name] = TriggerState(note: note.value)
    }
    for note in try connection.notes("key GLOB '\(TriggerOrder.namePrefix)*'") {
      counts.serverTriggers[note.namespace, default: [:]][note.key] = ServerTrigger(note: note.value)
      counts.triggers[note.namespace, default: [:]].merge([note.key: TriggerState()]) { counted, _ in counted }
    }
    for note in try connection.notes("key GLOB '\(OpenWindow.keyPrefix)*'") {
      counts.windows[note.namespace, default: [:]][note.key] = OpenWindow(note: note.value)
    }
  }

  private func readPackets(_ connection: SQLiteConnection) throws(SQLiteError) {
    for packet in try connection.records(of: PacketRecord.self, from: "packets ORDER BY position") {
      guard names.namespaces[packet.queue.namespace] != nil else { throw .invalidContent }
      self[packet.queue].packets.append(packet)
    }
  }

  /// A claim writes its packet only, not the ledger: the packets say what is claimed.
  private func countClaimed() throws(SQLiteError) {
    for index in queues.indices {
      let claimed = queues[index].packets.reduce(0) { $0 + $1.members.count }
      guard queues[index].ledger.count(claimed: claimed) else { throw .invalidContent }
    }
  }
}

/// The rings in memory, as the database on the disk knows them.
struct MemoryState {
  /// By namespace.
  var notes: [Int: MemoryNote] = [:]
  /// The file in memory is open.
  var isAttached = false
}

/// The names of namespaces and types, and the numbers that rows have for them.
struct Names {
  private(set) var namespaces: [Int: NamespaceName] = [:]
  private(set) var types: [Int64: ReportType] = [:]
  private var namespaceNumbers: [NamespaceName: Int] = [:]
  private var typeNumbers: [ReportType: Int64] = [:]
  var floors = NumberFloors(namespace: 1, type: 1)

  func number(of namespace: NamespaceName) -> Int? { namespaceNumbers[namespace] }
  func number(of type: ReportType) -> Int64? { typeNumbers[type] }
  var nextNamespace: Int { max(floors.namespace, (namespaces.keys.max() ?? 0) + 1) }
  var nextType: Int64 { max(floors.type, (types.keys.max() ?? 0) + 1) }

  mutating func add(_ namespace: NamespaceName, number: Int) {
    namespaces[number] = namespace
    namespaceNumbers[namespace] = number
  }

  mutating func add(_ type: ReportType, number: Int64) {
    types[number] = type
    typeNumbers[type] = number
  }
}
