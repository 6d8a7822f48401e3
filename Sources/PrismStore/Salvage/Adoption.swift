import PrismProtocol

/// Takes over into a fresh database what a damaged one says besides its waiting rows: names, contexts, the ledger,
/// packets in flight with their rows, dead letters. One transaction; the waiting rows follow while the store serves.
///
/// A packet in flight keeps its id and its rows. Rows of it that are lost are counted `corrupt`, as when a row of it is
/// found damaged otherwise.
struct Adoption {
  /// What the process knows, where the database was damaged under it.
  struct Remembered {
    var epoch: String
    var nextSequence: Int64
    var nextContext: Int64
    var namespaces: [Int: NamespaceName]
    var types: [Int64: ReportType]

    init(epoch: String, _ state: StoreState) {
      (self.epoch, nextSequence, nextContext) = (epoch, state.nextSequence, state.nextContext)
      (namespaces, types) = (state.namespaces, state.types)
    }
  }

  /// What came of it, for people.
  struct Outcome {
    /// Claimed and dead rows that are lost.
    var lostRows = 0
    var savedRows = 0
    /// A namespace or its ledger can't be read: how many rows are lost with it is unknown.
    var isLossUnknown = false
  }

  private let source: DamagedDatabase
  private let connection: SQLiteConnection
  private let remembered: Remembered?
  private var namespaces: [Int: NamespaceName] = [:]
  private var types: [Int64: ReportType] = [:]
  private var ledgers: [QueueID: LedgerRecord] = [:]
  private var contextEnd: Int64 = 1
  private var outcome = Outcome()

  private init(_ source: DamagedDatabase, _ connection: SQLiteConnection, _ remembered: Remembered?) {
    (self.source, self.connection, self.remembered) = (source, connection, remembered)
  }

  /// - Parameter name: the damaged file's, in the state folder.
  /// - Parameter connection: to a database of the newest version, without any row.
  static func run(
    _ source: DamagedDatabase, name: String, into connection: SQLiteConnection, remembered: Remembered?
  ) throws(SQLiteError) -> Outcome {
    try connection.transaction { () throws(SQLiteError) in
      var adoption = Adoption(source, connection, remembered)
      let before = try adoption.adoptFacts()
      try adoption.adoptNames()
      try adoption.adoptContexts()
      try adoption.readLedgers()
      try adoption.adoptLetters()
      try adoption.adoptPackets()
      try adoption.copyTheRest()
      try adoption.writeLedgers()
      var progress = before
      progress.files.insert(.init(name: name, nextPage: 1), at: 0)
      progress.missing = adoption.ledgers.mapValues { $0.ledger[.waiting] }
      progress.sources.insert(name, at: 0)
      progress.isLossy = progress.isLossy || adoption.outcome.lostRows > 0 || adoption.outcome.isLossUnknown
      try progress.write(connection)
      return adoption.outcome
    }
  }

  /// Takes over names and counts only: what waits, is on its way or dead in the old database counts as `corrupt`.
  static func runForCounts(
    _ source: DamagedDatabase, into connection: SQLiteConnection
  ) throws(SQLiteError) -> Outcome {
    try connection.transaction { () throws(SQLiteError) in
      var adoption = Adoption(source, connection, nil)
      _ = try adoption.adoptFacts()
      try adoption.adoptNames()
      try adoption.readLedgers()
      for queue in adoption.ledgers.keys {
        for account in [Ledger.Account.waiting, .claimed, .dead] { adoption.settle(queue, account, count: 0, bytes: 0) }
      }
      try adoption.writeLedgers()
      return adoption.outcome
    }
  }

  // MARK: Names

  /// - Returns: what the damaged database itself had not brought over yet.
  private mutating func adoptFacts() throws(SQLiteError) -> SalvageProgress {
    var facts: [String: String] = [:]
    try source.forEachRecord(of: "facts") { record in
      if let name = record.text(0), let value = record.text(1) { facts[name] = value }
    }
    var epoch = facts[Epoch.key].flatMap { Epoch.isOne($0, sum: facts[Epoch.sumKey]) ? $0 : nil }
    epoch = remembered?.epoch ?? epoch ?? source.contents?.epoch
    if let epoch { try Epoch.write(epoch, connection) } else { outcome.isLossUnknown = true }
    return SalvageProgress(
      files: facts[SalvageProgress.filesKey], missing: facts[SalvageProgress.missingKey],
      sources: facts[SalvageProgress.sourcesKey]) ?? .none
  }

  private mutating func adoptNames() throws(SQLiteError) {
    var names = remembered?.namespaces ?? source.contents?.namespaces ?? [:]
    var typeNames = remembered?.types ?? source.contents?.types ?? [:]
    try source.forEachRecord(of: "namespaces") { record in
      guard let text = record.text(1), let name = NamespaceName(text), (1...1_000_000).contains(record.id),
        record.columnCount < 3 || record.int(2) == RowSum.ofName(text, number: record.id, in: "namespaces")
      else { return }
      names[Int(record.id)] = name
    }
    try source.forEachRecord(of: "types") { record in
      guard let text = record.text(1), let name = ReportType(text),
        record.columnCount < 3 || record.int(2) == RowSum.ofName(text, number: record.id, in: "types")
      else { return }
      typeNames[record.id] = name
    }
    types = typeNames
    for (number, name) in names.sorted(by: { $0.key < $1.key }) where !namespaces.values.contains(name) {
      namespaces[number] = name
      try QueueID.create(number, among: namespaces, connection)
    }
    for (number, name) in types {
      try connection.insert(
        "types", [.int(number), .text(name.text), .int(RowSum.ofName(name.text, number: number, in: "types"))])
    }
    // A lost name's number is never given to another: rows that have it would come under the wrong name.
    let floors = NumberFloors(
      namespace: max(source.namespaceEnd, 1 + (names.keys.max() ?? 0)), type: (types.keys.max() ?? 0) + 1 << 20)
    try floors.write(connection)
    outcome.isLossUnknown = outcome.isLossUnknown || source.namespaceEnd > (namespaces.keys.max() ?? 0) + 1
  }

  private mutating func adoptContexts() throws(SQLiteError) {
    var end: Int64 = 1
    try source.forEachRecord(of: "contexts") { (record) throws(SQLiteError) in
      guard let namespace = record.int(1), let checksum = record.int(3), let members = record.data(4).map(Array.init),
        namespaces[Int(truncatingIfNeeded: namespace)] != nil,
        case let context = ContextCache.Stored(members: members, owner: .init(stored: record.int(5) ?? -1)),
        checksum == ReportStore.checksum(ofContext: record.id, namespace: Int(namespace), context)
      else { return }
      end = max(end, record.id + 1)
      try connection.insert(
        "contexts",
        [
          .int(record.id), .int(namespace), .int(.max), .int(checksum), .blob(members), .int(context.owner.number),
        ])
    }
    contextEnd = max(end, remembered?.nextContext ?? 1)
    var floors = try NumberFloors(connection)
    // Ids of contexts that are lost are not used again, for the same reason.
    floors.context = contextEnd + 1 << 32
    try floors.write(connection)
  }

  // MARK: The ledger

  private mutating func readLedgers() throws(SQLiteError) {
    var found: [QueueID: LedgerRecord] = [:]
    try source.forEachRecord(of: "ledger") { record in
      if let entry = LedgerRecord(record), namespaces[entry.queue.namespace] != nil { found[entry.queue] = entry }
    }
    let highest = max(found.values.map(\.lastSequence).max() ?? 0, (remembered?.nextSequence ?? 1) - 1)
    let queues = namespaces.keys.flatMap { number in
      ReportKind.allCases.map { QueueID(namespace: number, kind: $0) }
    }
    // A namespace without a payload has no ledger of payloads; one without any lost it.
    let isIncomplete =
      queues.contains { $0.kind == .meta && found[$0] == nil } || source.pages.hasOutdatedPage || outcome.isLossUnknown
    outcome.isLossUnknown = isIncomplete
    for queue in queues {
      ledgers[queue] = found[queue] ?? LedgerRecord(queue: queue)
      // Sequence numbers that may have been used are never used again.
      ledgers[queue]!.lastSequence = remembered == nil && isIncomplete ? highest + 1 << 40 : highest
      ledgers[queue]!.bytes = 0
    }
  }

  /// `count` rows of `bytes` were found of an account; the rest of what it had is lost.
  private mutating func settle(_ queue: QueueID, _ account: Ledger.Account, count: Int, bytes: Int) {
    let lost = ledgers[queue]!.ledger[account] - count
    if lost >= 0 {
      ledgers[queue]!.ledger.move(lost, from: account, to: .corrupt)
      outcome.lostRows += lost
    } else {
      ledgers[queue]!.ledger.stored -= lost
      ledgers[queue]!.ledger[account] = count
    }
    ledgers[queue]!.bytes += bytes
    outcome.savedRows += count
  }

  private func writeLedgers() throws(SQLiteError) {
    for entry in ledgers.values { try connection.insert("ledger", entry.values) }
  }

  // MARK: Rows

  private mutating func adoptLetters() throws(SQLiteError) {
    var found: [QueueID: (count: Int, bytes: Int)] = [:]
    try source.forEachRecord(of: "dead") { (record) throws(SQLiteError) in
      guard let letter = DeadLetterRecord(record), namespaces[letter.queue.namespace] != nil else { return }
      try connection.insert("dead", letter.values)
      guard connection.changes == 1 else { return }
      let before = found[letter.queue, default: (0, 0)]
      found[letter.queue] = (before.count + 1, before.bytes + letter.size)
    }
    for queue in ledgers.keys {
      settle(queue, .dead, count: found[queue]?.count ?? 0, bytes: found[queue]?.bytes ?? 0)
    }
  }

  private mutating func adoptPackets() throws(SQLiteError) {
    var packets: [QueueID: [PacketRecord]] = [:]
    try source.forEachRecord(of: "packets") { record in
      if let packet = PacketRecord(record) { packets[packet.queue, default: []].append(packet) }
    }
    for queue in ledgers.keys {
      let wanted = packets[queue, default: []]
      ledgers[queue]!.ledger.count(claimed: wanted.reduce(0) { $0 + $1.members.count })
      let rows = try adoptRows(Set(wanted.flatMap { Array($0.members.ids) }), queue)
      for var packet in wanted {
        packet.members = packet.members.intersecting(rows)
        packet.bytes = packet.members.ids.reduce(0) { $0 + (rows[$1] ?? 0) }
        if !packet.members.isEmpty { try connection.insert("packets", packet.values) }
      }
      settle(queue, .claimed, count: rows.count, bytes: rows.values.reduce(0, +))
    }
  }

  /// - Returns: the sizes of those that are whole.
  private func adoptRows(_ ids: Set<Int64>, _ queue: QueueID) throws(SQLiteError) -> [Int64: Int] {
    guard !ids.isEmpty else { return [:] }
    var sizes: [Int64: Int] = [:]
    let insert = try connection.prepare(StoreStatement.insertRows(1, queue).sql)
    try source.forEachRow(of: queue.table, ids) { (record) throws(SQLiteError) in
      try record.withWholeRow(hasPayload: queue.kind == .payload) { (row) throws(SQLiteError) in
        row.bind(to: insert)
        try insert.run()
        sizes[row.id] = Int(row.size)
      }
    }
    return sizes
  }

  /// What nothing hangs on: for `trace`, for `duplicate`, of the retries. A row of it that can't be read is left out.
  private func copyTheRest() throws(SQLiteError) {
    try source.forEachRecord(of: "settled") { (record) throws(SQLiteError) in
      guard let id = record.data(0), PacketID(bytes: Array(id)) != nil, let namespace = record.int(1),
        let kind = record.int(2), let time = record.int(3), let attempts = record.int(4),
        let wasDuplicate = record.int(5), let members = record.text(6), IDRuns(text: members) != nil
      else { return }
      try connection.insert(
        "settled",
        [
          .blob(Array(id)), .int(namespace), .int(kind), .int(time), .int(attempts), .int(wasDuplicate), .text(members),
        ])
    }
    try source.forEachRecord(of: "notes") { (record) throws(SQLiteError) in
      guard let namespace = record.int(0), let key = record.text(1), let value = record.data(2) else { return }
      try connection.insert("notes", [.int(namespace), .text(key), .blob(Array(value))])
    }
    try source.forEachRecord(of: "client_ids") { (record) throws(SQLiteError) in
      guard let namespace = record.int(0), let id = record.text(1), let row = record.int(2) else { return }
      try connection.insert(
        "client_ids", [.int(namespace), .text(id), .int(row), record.int(3).map { .int($0) } ?? .null])
    }
    // Rows that an older version stored may be among those that follow.
    try connection.setHasOwnerlessIDs(true)
  }
}
