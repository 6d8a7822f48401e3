import PrismProtocol
import PrismSQLite

/// The part of the store's memory about records: their tables with their ledgers, and packets in flight. It equals the
/// database after every commit.
struct RecordsState {
  private struct Key: Hashable {
    let namespace: Int
    let name: RecordTableName
  }

  /// By number.
  private(set) var tables: [Int: RecordTableRow] = [:]
  private var numbers: [Key: Int] = [:]
  /// In the order of sending, by namespace.
  var packets: [Int: [RecordPacketRow]] = [:]
  /// The last number that a waiting change was given.
  private(set) var position: Int64 = 0
  /// The server's stores, by namespace.
  var stores: [Int: KnownStore] = [:]
  /// Tables that come down.
  var down = DownState()
  /// Tables that the open transaction changed.
  var touched: Set<Int> = []
  /// Those of them whose records changed for programs, with the records; nil: more than a change names.
  private var changed: [Int: [RecordID]?] = [:]

  /// Reads everything but the records. - Throws: `isCorruption` if a row is not what was written.
  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    down = try DownState(connection)
    for note in try connection.notes("key = '\(KnownStore.key)'") {
      stores[note.namespace] = KnownStore(note: note.value)
    }
    for table in try connection.records(of: RecordTableRow.self, from: "record_tables") {
      add(table)
      position = max(position, table.position)
    }
    for packet in try connection.records(of: RecordPacketRow.self, from: "record_packets ORDER BY position") {
      packets[packet.namespace, default: []].append(packet)
    }
  }

  mutating func add(_ table: RecordTableRow) {
    tables[table.number] = table
    numbers[Key(namespace: table.namespace, name: table.name)] = table.number
  }

  /// nil: no store gave its identity.
  func store(of namespace: NamespaceName, _ names: Names) -> KnownStore? {
    names.number(of: namespace).flatMap { stores[$0] }
  }

  var nextTable: Int { (tables.keys.max() ?? 0) + 1 }

  /// nil if nothing was ever stored in the table.
  func number(_ name: RecordTableName, namespace: Int) -> Int? { numbers[Key(namespace: namespace, name: name)] }

  /// The table is written with the commit.
  subscript(table: Int) -> RecordTableRow {
    get { tables[table]! }
    set {
      // A new generation without an id: it is not known which records changed.
      if let before = tables[table], before.generation != newValue.generation { changed[table] = .some(nil) }
      tables[table] = newValue
      touched.insert(table)
    }
  }

  /// Counts a change of a record that programs see, by whichever side, and notes it for those who watch the table.
  mutating func change(_ id: RecordID, in table: Int) {
    tables[table]!.generation += 1
    touched.insert(table)
    guard let noted = changed[table, default: []] else { return }
    guard !noted.contains(id) else { return }
    changed[table] = .some(noted.count < RecordTableChange.idsMax ? noted + [id] : nil)
  }

  /// Takes what the transaction that was just committed changed for programs.
  mutating func takeChanges(_ names: Names) -> [RecordTableChange] {
    if changed.isEmpty { return [] }
    defer { changed = [:] }
    return changed.sorted { $0.key < $1.key }.compactMap { change($0.key, ids: $0.value, names) }
  }

  /// Every table: the database is another one than before.
  func changes(_ names: Names) -> [RecordTableChange] {
    tables.keys.sorted().compactMap { change($0, ids: nil, names) }
  }

  private func change(_ number: Int, ids: [RecordID]?, _ names: Names) -> RecordTableChange? {
    guard let table = tables[number], let namespace = names.namespaces[table.namespace] else { return nil }
    return RecordTableChange(namespace, table.name, generation: table.generation, ids: ids)
  }

  /// Reads a table without a note that it changed.
  subscript(reading table: Int) -> RecordTableRow { tables[table]! }

  mutating func nextPosition() -> Int64 {
    position += 1
    return position
  }

  func tables(of namespace: Int) -> [RecordTableRow] {
    tables.values.filter { $0.namespace == namespace }.sorted { $0.name < $1.name }
  }

  /// The packet's namespace and its place among those in flight.
  func find(_ packet: PacketID) -> (namespace: Int, place: Int)? {
    for (namespace, packets) in packets {
      if let place = packets.firstIndex(where: { $0.id == packet }) { return (namespace, place) }
    }
    return nil
  }

  /// Operations of a table that had their answer.
  func settled(_ table: Int) -> Int { tables[table]!.ledger[.delivered] + tables[table]!.ledger[.dead] }

  /// The server answered an operation on the table since it was asked for its changes.
  func isOvertaken(_ target: DownTarget, table: Int) -> Bool {
    target.table.direction == .both && target.settledBefore.map { $0 != settled(table) } ?? false
  }

  /// The answer is of the store that answered last, and no record is to be marked for it.
  func isMet(_ target: DownTarget, _ names: Names) -> Bool {
    guard let known = store(of: target.namespace, names) else { return true }
    return target.store.map { $0 == known.latest } ?? true && !known.isMarking
  }

  /// A record that a whole answer lacks may be deleted: the store that answers is trusted, and knows all that it ever sent.
  func takesAbsence(_ target: DownTarget, _ names: Names) -> Bool {
    guard let known = store(of: target.namespace, names) else { return !target.isUnheard }
    return target.store != nil && !target.isUnheard && known.isTrusted && known.kept[target.table.name] == nil
  }

  func ledger(of namespace: Int) -> Ledger {
    tables(of: namespace).reduce(into: Ledger()) { sum, table in
      sum.stored += table.ledger.stored
      for (account, _) in RecordTableRow.accounts { sum[account] += table.ledger[account] }
    }
  }
}
