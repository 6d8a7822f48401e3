import PrismProtocol
import PrismSQLite

/// Meets the server's stores: absence in a store that is another one, or that knows less than before, is no deletion.
struct StoreComparison: StoreOperations {
  /// Of one transaction.
  private static let recordsPerSlice = 500

  let transaction: StoreTransaction
  private let namespace: NamespaceName

  init(_ transaction: StoreTransaction, _ namespace: NamespaceName) {
    (self.transaction, self.namespace) = (transaction, namespace)
  }

  /// - Parameter knowsLess: it sent something before that it does not know now.
  /// - Parameter missing: a packet that was accepted, and that it does not have.
  func recognize(_ store: StoreMark, knowsLess: Bool, missing: PacketID?) throws(SQLiteError) -> KnownStore.Change {
    let before = state.records.store(of: namespace, state.names)
    if state.records.tables(of: try transaction.number(of: namespace)).isEmpty {
      // No record could be deleted. The store is known, so that packets can name it.
      if before?.latest != store { try write(KnownStore(store)) }
      return .same
    }
    var known = before ?? KnownStore(store)
    let isLost = missing != nil && missing != known.missingPacket
    if isLost { known.missingPacket = missing }
    guard known.latest != store || knowsLess || isLost else {
      if before == nil { try write(known) }
      return .same
    }
    let change: KnownStore.Change =
      store.id != known.trusted.id ? .other : store.id == known.latest.id ? .knowsLess : .back
    known.latest = store
    (known.marksAfter, known.marksThrough) = (0, state.records.position)
    try askForAll { known.kept[$0] = known.kept[$0] ?? 0 }
    try write(known)
    return change
  }

  /// Takes the deletions of the store that answered last, also those that its whole answers tell.
  /// - Parameter expected: the store that is meant; nil: the one that answered last.
  func accept(_ expected: StoreMark?) throws(SQLiteError) -> KnownStore.Acceptance {
    guard var known = state.records.store(of: namespace, state.names) else { return .nothingKnown }
    guard expected == nil || expected?.id == known.latest.id else { return .isOther(known.latest) }
    guard known.trusted != known.latest || !known.kept.isEmpty else { return .accepted(known.latest, isNews: false) }
    (known.trusted, known.kept) = (known.latest, [:])
    try askForAll { _ in }
    try write(known)
    return .accepted(known.latest, isNews: true)
  }

  private func askForAll(_ note: (RecordTableName) -> Void) throws(SQLiteError) {
    for table in state.records.tables(of: try transaction.number(of: namespace)) {
      guard let down = state.records.down[table.number] else { continue }
      if down.sequence != nil { state.records.down[table.number]?.sequence = nil }
      note(table.name)
    }
  }

  /// Notes that a whole answer lacked `count` records of a table, which are kept.
  func keep(_ count: Int, of table: RecordTableName) throws(SQLiteError) {
    try changeKept { $0.kept[table] = count == 0 && $0.isTrusted ? nil : count }
  }

  /// Counts a deletion that is not taken.
  func refuseDeletion(of table: RecordTableName) throws(SQLiteError) {
    try changeKept { $0.kept[table, default: 0] += 1 }
  }

  private func changeKept(_ change: (inout KnownStore) -> Void) throws(SQLiteError) {
    guard var known = state.records.store(of: namespace, state.names) else { return }
    change(&known)
    try write(known)
  }

  private func write(_ known: KnownStore) throws(SQLiteError) {
    state.records.stores[try transaction.number(of: namespace)] = known
    try transaction.write(Note(namespace: namespace, key: KnownStore.key, value: known.note))
  }

  // MARK: Sending again

  /// Marks some records as ones that the server does not have. - Returns: whether more are to be marked.
  /// - Parameter tables: as they are declared now.
  func mark(_ tables: [RecordTable]) throws(SQLiteError) -> Bool {
    guard var known = state.records.store(of: namespace, state.names), known.isMarking else { return false }
    let declared = Dictionary(tables.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let own = Set(state.records.tables(of: try transaction.number(of: namespace)).map(\.number))
    let select = try transaction.statement(RecordStatement.range).bind([
      ":after": known.marksAfter, ":through": known.marksThrough, ":limit": Self.recordsPerSlice,
    ])
    let found = try select.records(of: RecordRow.self).compactMap { access.present($0) }
    for record in found where own.contains(record.declaredTable) {
      if record.isKeptDeletion {
        try sendAgain(record)
      } else {
        try mark(record, declared[state.records[reading: record.table].name])
      }
    }
    known.marksAfter = found.last?.number ?? known.marksThrough
    if !known.isMarking { (known.marksAfter, known.marksThrough) = (0, 0) }
    try write(known)
    return known.isMarking
  }

  private func mark(_ before: RecordRow, _ table: RecordTable?) throws(SQLiteError) {
    var record = before
    record.standing.forget()
    try renameReferences(of: &record, table)
    guard record.standing != before.standing || record.fields != before.fields else { return }
    if record.standing.isWaiting, !before.standing.isWaiting {
      record.position = state.records.nextPosition()
      state.records[record.table].ledger.stored += 1
      state.records[record.table].ledger[.waiting] += 1
    }
    if !record.standing.isRefused { record.refusal = nil }
    try access.write(&record)
  }

  /// A record that was put again since is not deleted.
  private func sendAgain(_ deletion: RecordRow) throws(SQLiteError) {
    var record = deletion
    record.table = deletion.declaredTable
    guard try access.record(record.id, in: record.table) == nil else {
      try transaction.statement(RecordStatement.remove).run([":number": deletion.number])
      return
    }
    record.position = state.records.nextPosition()
    state.records[record.table].records += 1
    state.records[record.table].ledger.stored += 1
    state.records[record.table].ledger[.waiting] += 1
    try access.write(&record)
  }

  /// A reference by an id that the other store gave names the record by its id here.
  private func renameReferences(of record: inout RecordRow, _ table: RecordTable?) throws(SQLiteError) {
    guard let table, !table.references.isEmpty, record.isThere,
      let members = (try? JSONValue(parsing: record.fields))?.object
    else { return }
    let renamed = try members.map { (member) throws(SQLiteError) -> JSONValue.Member in
      guard let target = try access.target(of: member, table, in: namespace) else { return member }
      return .init(member.key, .string(target.id.text))
    }
    guard renamed != members else { return }
    let fields = JSONValue.object(renamed)
    if record.base != nil { record.base = DownMerging.base(fields) }
    record.fields = fields.bytes
  }
}
