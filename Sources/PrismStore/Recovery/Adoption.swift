import PrismProtocol
import PrismRecovery
import PrismSQLite

/// Takes over into a new database what a damaged one says besides its waiting rows: names, contexts, the ledger, packets in
/// flight with their rows, dead letters. One transaction; the waiting rows follow while the store serves.
///
/// A packet in flight keeps its id and its rows. Rows of it that are lost count as `corrupt`, as they do when a row of it is
/// found damaged otherwise.
struct Adoption {
  /// The state that the process kept, if the database was damaged while it was open.
  struct Remembered {
    let epoch: Epoch
    let state: StoreState
  }

  /// Counts of saved and lost rows, for people.
  struct Outcome {
    var lostRows = 0
    var savedRows = 0
    /// A namespace or its ledger can't be read: how many rows are lost with it is unknown.
    var isLossUnknown = false
  }

  private let source: SalvageSource
  private let connection: SQLiteConnection
  private let remembered: Remembered?
  private var namespaces: [Int: NamespaceName] = [:]
  private var ledgers: [QueueID: LedgerRecord] = [:]
  private var outcome = Outcome()

  private init(_ source: SalvageSource, _ connection: SQLiteConnection, _ remembered: Remembered?) {
    (self.source, self.connection, self.remembered) = (source, connection, remembered)
  }

  /// - Parameter name: the damaged file's, in the state folder.
  /// - Parameter connection: to a database of the newest version, without any row.
  static func run(
    _ source: SalvageSource, name: String, into connection: SQLiteConnection, remembered: Remembered?
  ) throws(SQLiteError) -> Outcome {
    try connection.transaction { () throws(SQLiteError) in
      var adoption = Adoption(source, connection, remembered)
      var progress = try adoption.adoptFacts()
      try adoption.adoptNames()
      try adoption.adoptContexts()
      adoption.readLedgers()
      try adoption.adoptDeadLetters()
      try adoption.adoptPackets()
      try adoption.copyTheRest()
      try adoption.writeLedgers()
      progress.files.insert(.init(name: name, nextPage: 1), at: 0)
      progress.missing = adoption.ledgers.mapValues { $0.ledger[.waiting] }
      progress.sources.insert(name, at: 0)
      progress.isLossy = progress.isLossy || adoption.outcome.lostRows > 0 || adoption.outcome.isLossUnknown
      try progress.write(connection)
      return adoption.outcome
    }
  }

  /// Takes over names and counts only: rows that wait, are in flight or dead in the old database count as `corrupt`.
  static func runForCounts(
    _ source: SalvageSource, into connection: SQLiteConnection
  ) throws(SQLiteError) -> Outcome {
    try connection.transaction { () throws(SQLiteError) in
      var adoption = Adoption(source, connection, nil)
      _ = try adoption.adoptFacts()
      try adoption.adoptNames()
      adoption.readLedgers()
      for queue in adoption.ledgers.keys {
        for account in [Ledger.Account.waiting, .claimed, .dead] { adoption.settle(queue, account, count: 0, bytes: 0) }
      }
      try adoption.writeLedgers()
      return adoption.outcome
    }
  }

  /// Calls `body` with each record of a table that can be read.
  private func forEach<Column: SQLiteColumn>(
    _ table: String, _ columns: Column.Type, _ body: (SalvagedRow<Column>) throws(SQLiteError) -> Void
  ) throws(SQLiteError) {
    try source.database.forEachRecord(of: table) { (record) throws(SQLiteError) in
      try body(record.row(of: columns))
    }
  }

  // MARK: Names

  /// - Returns: what the damaged database itself had not brought over yet.
  private mutating func adoptFacts() throws(SQLiteError) -> SalvageProgress {
    var facts: [String: String] = [:]
    try forEach("facts", SQLiteConnection.FactColumn.self) { row in
      if let name = row.string(.name), let value = row.string(.value) { facts[name] = value }
    }
    let found = facts[Epoch.key].flatMap { Epoch.isOne($0, sum: facts[Epoch.sumKey]) ? $0 : nil }
    if let epoch = remembered?.epoch.text ?? found ?? source.contents?.epoch {
      try Epoch.write(epoch, connection)
    } else {
      outcome.isLossUnknown = true
    }
    if let held = facts[HeldClock.factKey] { try connection.setFact(HeldClock.factKey, held) }
    return SalvageProgress(
      files: facts[SalvageProgress.filesKey], missing: facts[SalvageProgress.missingKey],
      sources: facts[SalvageProgress.sourcesKey])
  }

  private mutating func adoptNames() throws(SQLiteError) {
    var names = remembered?.state.names.namespaces ?? source.contents?.namespaces ?? [:]
    var types = remembered?.state.names.types ?? source.contents?.types ?? [:]
    try forEach(NameRecord.Table.namespaces.rawValue, NameRecord.Column.self) { row in
      guard let record = NameRecord(row, in: .namespaces), let name = NamespaceName(record.name),
        QueueID.namespaces.contains(Int(record.number))
      else { return }
      names[Int(record.number)] = name
    }
    try forEach(NameRecord.Table.types.rawValue, NameRecord.Column.self) { row in
      guard let record = NameRecord(row, in: .types), let type = ReportType(record.name) else { return }
      types[record.number] = type
    }
    for (number, name) in names.sorted(by: { $0.key < $1.key }) where !namespaces.values.contains(name) {
      namespaces[number] = name
      try QueueTables.create(number, among: namespaces, connection)
    }
    for (number, type) in types {
      let record = NameRecord(.types, number: number, name: type.text)
      try connection.insertOrIgnore(record, into: record.table)
    }
    // A lost name's number is never given to another: rows that have it would get the wrong name.
    let floors = NumberFloors(
      namespace: max(source.namespaceEnd, 1 + (names.keys.max() ?? 0)), type: (types.keys.max() ?? 0) + 1 << 20)
    try floors.write(connection)
    outcome.isLossUnknown = outcome.isLossUnknown || source.namespaceEnd > (namespaces.keys.max() ?? 0) + 1
  }

  private func adoptContexts() throws(SQLiteError) {
    var end: Int64 = 1
    try source.database.forEach(ContextRecord.self, of: "contexts") { (context) throws(SQLiteError) in
      guard namespaces[context.namespace] != nil else { return }
      end = max(end, context.id + 1)
      try connection.insertOrIgnore(context, into: "contexts")
    }
    var floors = try NumberFloors(connection)
    // Ids of contexts that are lost are not used again, for the same reason.
    floors.context = max(end, remembered?.state.nextContext ?? 1) + 1 << 32
    try floors.write(connection)
  }

  // MARK: The ledger

  private mutating func readLedgers() {
    var found: [QueueID: LedgerRecord] = [:]
    source.database.forEach(LedgerRecord.self, of: "ledger") { ledger in
      if namespaces[ledger.queue.namespace] != nil { found[ledger.queue] = ledger }
    }
    let highest = max(found.values.map(\.lastSequence).max() ?? 0, (remembered?.state.nextSequence ?? 1) - 1)
    let queues = namespaces.keys.flatMap { QueueID.all(of: $0) }
    // A namespace without a payload has no ledger of payloads; one without any lost it.
    let isIncomplete =
      queues.contains { $0.kind == .meta && found[$0] == nil } || source.database.hasOutdatedPage
      || outcome.isLossUnknown
    outcome.isLossUnknown = isIncomplete
    for queue in queues {
      var ledger = found[queue] ?? LedgerRecord(queue: queue)
      // Sequence numbers that may have been used are never used again.
      ledger.lastSequence = remembered == nil && isIncomplete ? highest + 1 << 40 : highest
      (ledger.bytes, ledger.segments) = (0, RowSegments())
      // Its rows are found by their ids: until then they count as rows that wait.
      ledger.ledger.move(ledger.ledger[.kept], from: .kept, to: .waiting)
      ledgers[queue] = ledger
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
    for ledger in ledgers.values { try connection.insertOrIgnore(ledger, into: "ledger") }
  }

  // MARK: Rows

  private mutating func adoptDeadLetters() throws(SQLiteError) {
    var found: [QueueID: (count: Int, bytes: Int)] = [:]
    try source.database.forEach(DeadLetterRecord.self, of: "dead") { (letter) throws(SQLiteError) in
      guard letter.isWhole != false, namespaces[letter.queue.namespace] != nil,
        try connection.insertOrIgnore(letter, into: "dead")
      else { return }
      let before = found[letter.queue, default: (0, 0)]
      found[letter.queue] = (before.count + 1, before.bytes + letter.size)
    }
    for queue in ledgers.keys {
      settle(queue, .dead, count: found[queue]?.count ?? 0, bytes: found[queue]?.bytes ?? 0)
    }
  }

  private mutating func adoptPackets() throws(SQLiteError) {
    var packets: [QueueID: [PacketRecord]] = [:]
    source.database.forEach(PacketRecord.self, of: "packets") { packets[$0.queue, default: []].append($0) }
    let spent = source.spent
    for queue in ledgers.keys {
      let wanted = packets[queue, default: []].map { packet in
        var packet = packet
        // A page may say that a packet is in flight, and a newer one that it was delivered.
        for run in spent[queue]?.runs ?? [] { packet.members.remove(through: run.last, from: run.first) }
        return packet
      }
      ledgers[queue]!.ledger.count(claimed: wanted.reduce(0) { $0 + $1.members.count })
      let rows = try adoptRows(Set(wanted.flatMap { Array($0.members.ids) }), queue)
      for var packet in wanted {
        packet.members = packet.members.intersecting(rows)
        packet.bytes = packet.members.ids.reduce(0) { $0 + (rows[$1] ?? 0) }
        if !packet.members.isEmpty { try connection.insertOrIgnore(packet, into: "packets") }
      }
      settle(queue, .claimed, count: rows.count, bytes: rows.values.reduce(0, +))
    }
  }

  /// The segments of the queue, with one of the ring if a row needs it.
  private mutating func ringSegments(_ queue: QueueID, _ ids: Set<Int64>) throws(SQLiteError) -> RowSegments {
    if ids.contains(where: RowID.isKept) {
      let tables = ledgers[queue]!.segments.begin(at: ledgers[queue]!.lastSequence + 1, isRing: true)
      try QueueTables.add(tables, of: queue, among: namespaces, connection) { ledgers[$0]?.segments.tableCount ?? 1 }
    }
    return ledgers[queue]!.segments
  }

  /// - Returns: the sizes of those that are whole.
  private mutating func adoptRows(_ ids: Set<Int64>, _ queue: QueueID) throws(SQLiteError) -> [Int64: Int] {
    guard !ids.isEmpty else { return [:] }
    var sizes: [Int64: Int] = [:]
    let segments = try ringSegments(queue, ids)
    for table in source.database.tables where QueueID(table: table) == queue {
      try source.database.forEachRow(of: table, ids.subtracting(sizes.keys)) { (record) throws(SQLiteError) in
        try record.withWholeRow(hasPayload: queue.kind.hasPayload) { (row) throws(SQLiteError) in
          guard sizes[row.id] == nil else { return }
          let insert = StoredRow.insert(into: segments.table(of: row.id, queue).name, columns: queue.columns)
          try connection.prepare(insert).run(inserting: row)
          sizes[row.id] = Int(row.size)
        }
      }
    }
    return sizes
  }

  private func copy<Record: CheckedRecord>(_ record: Record.Type, of table: String) throws(SQLiteError) {
    try source.database.forEach(record, of: table) { (record) throws(SQLiteError) in
      try connection.insertOrIgnore(record, into: table)
    }
  }

  /// Copies best-effort tables: trace history, retry notes, known report ids. A record that can't be read is left out.
  private func copyTheRest() throws(SQLiteError) {
    try copy(DeliveryRecord.self, of: "settled")
    try copy(NoteRecord.self, of: "notes")
    try copy(ClientIDRecord.self, of: "client_ids")
    try RecordAdoption.run(source.database, into: connection, namespaces: Set(namespaces.keys))
    // Rows that an older version stored may be among those that follow.
    try connection.setHasOwnerlessIDs(true)
  }
}

/// Takes over into a new database the records that can be read of a damaged one. An operation that was in flight is sent
/// again, under another packet's id: the server knows the record by its id.
struct RecordAdoption {
  private let connection: SQLiteConnection
  private var tables: [Int: RecordTableRow] = [:]

  private init(_ connection: SQLiteConnection) { self.connection = connection }

  /// - Parameter namespaces: those of the new database.
  static func run(
    _ database: DamagedDatabase, into connection: SQLiteConnection, namespaces: Set<Int>
  ) throws(SQLiteError) {
    var adoption = RecordAdoption(connection)
    database.forEach(RecordTableRow.self, of: "record_tables") { table in
      if namespaces.contains(table.namespace), table.ledger.stored >= adoption.tables[table.number]?.ledger.stored ?? 0
      {
        adoption.tables[table.number] = table
      }
    }
    var newest: [Int64: Int64] = [:]
    try database.forEach(RecordRow.self, of: "records") { (row) throws(SQLiteError) in
      guard adoption.tables[row.declaredTable] != nil, row.version > newest[row.number] ?? -1
      else { return }
      newest[row.number] = row.version
      try adoption.take(row)
    }
    try adoption.writeTables()
  }

  private func take(_ row: RecordRow) throws(SQLiteError) {
    var row = row
    // An insert that may have left must be undone there.
    let isGone =
      row.standing.sent == .insert && row.standing.state == .delete ? row.standing.confirm() : row.standing.release()
    guard !isGone else { return }
    let insert = try connection.prepare(RecordRow.insert(into: "records", "OR REPLACE"))
    try insert.run(inserting: row)
  }

  /// Changes that are lost with their records count as corrupt.
  private func writeTables() throws(SQLiteError) {
    let insert = try connection.prepare(RecordTableRow.insert(into: "record_tables"))
    for (number, found) in tables {
      var table = found
      table.records = try count("SELECT count(*) FROM records WHERE tab = \(number)")
      (table.ledger[.waiting], table.ledger[.claimed]) = (
        try count("SELECT count(*) FROM records WHERE tab = \(number) AND next > 0"), 0
      )
      let settled = table.ledger[.delivered] + table.ledger[.dead] + table.ledger[.removed] + table.ledger[.waiting]
      table.ledger[.corrupt] = max(0, found.ledger.stored - settled)
      table.ledger.stored = settled + table.ledger[.corrupt]
      table.generation += 1
      try insert.run(inserting: table)
    }
  }

  private func count(_ sql: String) throws(SQLiteError) -> Int { Int(try connection.firstInt(sql) ?? 0) }
}
