import PrismProtocol

/// What is known in memory of the whole database, besides its rows. Read from it at start, and again whenever a
/// transaction failed.
struct StoreState {
  private(set) var namespaces: [Int: NamespaceName] = [:]
  private var namespaceNumbers: [NamespaceName: Int] = [:]
  private(set) var types: [Int64: ReportType] = [:]
  private var typeNumbers: [ReportType: Int64] = [:]
  /// By `QueueID.index`.
  private var queues: [QueueState] = []
  /// Unique in the database, and never used again: gaps are left where a transaction failed.
  var nextSequence: Int64 = 1
  var nextContext: Int64 = 1
  /// By namespace; missing: nobody asked yet.
  var shares: [Int: UserShares] = [:]
  /// Some ids in `client_ids` are of no known user: `ClientIDKey`.
  var hasOwnerlessIDs = false

  func number(of namespace: NamespaceName) -> Int? { namespaceNumbers[namespace] }
  func number(of type: ReportType) -> Int64? { typeNumbers[type] }
  private var floors = NumberFloors(namespace: 1, type: 1)
  var nextNamespace: Int { max(floors.namespace, (namespaces.keys.max() ?? 0) + 1) }
  var nextType: Int64 { max(floors.type, (types.keys.max() ?? 0) + 1) }

  mutating func add(_ namespace: NamespaceName, number: Int) {
    namespaces[number] = namespace
    namespaceNumbers[namespace] = number
    let missing = (number + 1) * 2 - queues.count
    if missing > 0 { queues.append(contentsOf: repeatElement(QueueState(), count: missing)) }
  }

  mutating func add(_ type: ReportType, number: Int64) {
    types[number] = type
    typeNumbers[type] = number
  }

  subscript(queue: QueueID) -> QueueState {
    get { queues[queue.index] }
    _modify { yield &queues[queue.index] }
  }

  /// nil for a namespace that never stored anything.
  func queue(_ namespace: NamespaceName, _ kind: ReportKind) -> QueueID? {
    number(of: namespace).map { QueueID(namespace: $0, kind: kind) }
  }

  /// What each queue's ledger counts as stored.
  var storedCounts: [QueueID: Int] {
    var counts: [QueueID: Int] = [:]
    for number in namespaces.keys {
      for kind in ReportKind.allCases {
        let queue = QueueID(namespace: number, kind: kind)
        counts[queue] = self[queue].ledger.stored
      }
    }
    return counts
  }

  /// Where a packet in flight stands.
  func find(_ packet: PacketID) -> (queue: QueueID, position: Int)? {
    for number in namespaces.keys {
      for kind in ReportKind.allCases {
        let queue = QueueID(namespace: number, kind: kind)
        if let position = queues[queue.index].packets.firstIndex(where: { $0.id == packet }) {
          return (queue, position)
        }
      }
    }
    return nil
  }
}

// MARK: From and to the database
extension StoreState {
  /// Reads everything. - Throws: `isCorruption` also where what it reads can't be.
  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    try connection.prepare("SELECT number, name, checksum FROM namespaces").forEachRow { (row) throws(SQLiteError) in
      guard let name = NamespaceName(row.text(1)), (1...1_000_000).contains(row.int(0)),
        row.int64(2) == RowSum.ofName(name.text, number: row.int64(0), in: "namespaces")
      else { throw .nonsense }
      add(name, number: row.int(0))
    }
    try connection.prepare("SELECT number, name, checksum FROM types").forEachRow { (row) throws(SQLiteError) in
      guard let name = ReportType(row.text(1)),
        row.int64(2) == RowSum.ofName(name.text, number: row.int64(0), in: "types")
      else { throw .nonsense }
      add(name, number: row.int64(0))
    }
    try readLedger(connection)
    try readPackets(connection)
    try countClaimed()
    floors = try NumberFloors(connection)
    hasOwnerlessIDs = try connection.hasOwnerlessIDs()
    nextContext = max(floors.context, try connection.firstInt("SELECT max(id) + 1 FROM contexts") ?? 1)
  }

  private mutating func readLedger(_ connection: SQLiteConnection) throws(SQLiteError) {
    try connection.prepare("SELECT * FROM ledger").forEachRow { (row) throws(SQLiteError) in
      let queue = QueueID(namespace: row.int(0), kind: QueueID.kind(numbered: row.int(1)))
      guard namespaces[queue.namespace] != nil else { throw .nonsense }
      let numbers = (2..<17).map { row.int64($0) }
      let lastAccepted = row.isNull(17) ? nil : row.bytes(17)
      guard row.int64(18) == RowSum.ofLedger(queue, numbers, lastAccepted: lastAccepted) else { throw .nonsense }
      var state = QueueState()
      state.ledger.stored = row.int(2)
      for (index, account) in Ledger.Account.allCases.enumerated() { state.ledger[account] = row.int(3 + Int32(index)) }
      state.bytes = row.int(12)
      state.lastSequence = row.int64(13)
      state.newestCreated = LaneValues { row.int64(14 + Int32($0.rawValue)) }
      state.lastAccepted = lastAccepted.flatMap { PacketID(bytes: $0) }
      guard state.ledger.isBalanced else { throw .nonsense }
      self[queue] = state
      nextSequence = max(nextSequence, state.lastSequence + 1)
    }
  }

  private mutating func readPackets(_ connection: SQLiteConnection) throws(SQLiteError) {
    let packets = try connection.prepare(
      "SELECT namespace, kind, id, created_time, bytes, has_client_ids, header, members, position, checksum FROM packets ORDER BY position"
    )
    try packets.forEachRow { (row) throws(SQLiteError) in
      let queue = QueueID(namespace: row.int(0), kind: QueueID.kind(numbered: row.int(1)))
      guard namespaces[queue.namespace] != nil, let id = PacketID(bytes: row.bytes(2)),
        let members = IDRuns(text: row.text(7)),
        row.int64(9)
          == RowSum.ofPacket(
            id.bytes, queue, createdTime: row.int64(3), hasClientIDs: row.int(5) != 0, header: row.text(6),
            members: row.text(7))
      else { throw .nonsense }
      self[queue].packets.append(
        PacketState(
          id: id, position: row.int(8), createdTime: row.int64(3), bytes: row.int(4), hasClientIDs: row.int(5) != 0,
          header: row.text(6),
          members: members))
    }
  }

  /// A claim writes its packet only: what is claimed is what the packets list.
  private mutating func countClaimed() throws(SQLiteError) {
    for index in queues.indices {
      let claimed = queues[index].packets.reduce(0) { $0 + $1.members.count }
      guard queues[index].ledger.count(claimed: claimed) else { throw .nonsense }
    }
  }

  func writeLedger(of queue: QueueID, with statement: SQLiteStatement) throws(SQLiteError) {
    let numbers = queues[queue.index].ledgerNumbers
    // More rows than were ever stored: a damaged tree leads to some of them twice.
    let ledger = queues[queue.index].ledger
    guard ledger.isBalanced, Ledger.Account.allCases.allSatisfy({ ledger[$0] >= 0 }) else { throw .nonsense }
    statement.bind(1, queue.namespace)
    statement.bind(2, QueueID.number(of: queue.kind))
    for (index, number) in numbers.enumerated() { statement.bind(3 + Int32(index), number) }
    let lastAccepted = queues[queue.index].lastAccepted?.bytes
    statement.bind(18, lastAccepted)
    statement.bind(19, RowSum.ofLedger(queue, numbers, lastAccepted: lastAccepted))
    try statement.run()
  }
}

extension QueueState {
  /// The ledger's columns between the queue and `last_accepted`.
  fileprivate var ledgerNumbers: [Int64] {
    var numbers: [Int64] = []
    numbers.reserveCapacity(15)
    numbers.append(Int64(ledger.stored))
    for account in Ledger.Account.allCases { numbers.append(Int64(ledger[account])) }
    numbers.append(Int64(bytes))
    numbers.append(lastSequence)
    for lane in Lane.allCases { numbers.append(newestCreated[lane]) }
    return numbers
  }
}

extension SQLiteError {
  /// The file's structure is sound, and yet it says what was never written.
  static let nonsense = SQLiteError(code: 11, message: "the database says what was never written")
  /// Not SQLite's: the file was replaced by another database of prism's.
  static let otherDatabase = SQLiteError(
    code: -2, message: "another database of prism's stands in the place of ours: restart prismd to use it")
  static let changedNames = SQLiteError(code: -2, message: "the database is another one than before")
  static let ioError: Int32 = 10
  static let damagedLog = SQLiteError(code: 11, message: "the write-ahead log is damaged before its end")
}
