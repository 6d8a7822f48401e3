import PrismProtocol
import PrismSQLite

/// Takes a whole table in: written beside the old one in several transactions, and swapped in one. So programs read the old
/// table or the new one.
struct DownStaging: PlainOperations {
  let transaction: StoreTransaction

  /// - Returns: the content to write to.
  func begin(_ target: DownTarget) throws(SQLiteError) -> Int64 {
    let table = try access.number(of: target.table.name, in: target.namespace)
    let content = state.records.down.nextContent()
    state.records.down.stages[content] = DownState.Stage(table: table, declared: target.table)
    return content
  }

  /// - Returns: false if there is no such content: the store was opened again meanwhile.
  func add(_ records: [DownRecord], sequence: Int64, to content: Int64) throws(SQLiteError) -> Bool {
    guard var stage = state.records.down.stages[content] else { return false }
    for record in records {
      let row = DownRecordRow(record, content: content, version: sequence)
      // Records of `both` tables are changed as trees.
      let isReadable = stage.declared.direction == .down || (try? JSONValue(parsing: record.fields)) != nil
      if isReadable, try rows.insert(row, of: stage.declared) { stage.rows += 1 } else { stage.isBroken = true }
    }
    state.records.down.stages[content] = stage
    return true
  }

  /// Written rows are deleted later.
  func drop(_ content: Int64) {
    guard state.records.down.stages.removeValue(forKey: content) != nil else { return }
    state.records.down.garbage.append(content)
  }

  /// Makes the content the table.
  func finish(_ content: Int64, _ target: DownTarget, sequence: Int64) throws(SQLiteError) -> DownOutcome {
    guard let stage = state.records.down.stages[content],
      DownTableRow.shape(of: stage.declared) == DownTableRow.shape(of: target.table)
    else {
      drop(content)
      return DownOutcome(.outdated)
    }
    state.records.down.stages[content] = nil
    let table = stage.table
    let before = state.records.down[table]
    var outcome = DownOutcome(.done)
    if stage.isBroken { outcome.end = .unreadable }
    if target.table.direction == .both, state.records[reading: table].ledger[.claimed] > 0 { outcome.end = .inFlight }
    if state.records.isOvertaken(target, table: table) { outcome.end = .overtaken }
    if !state.records.isMet(target, state.names) { outcome.end = .outdated }
    guard outcome.end == .done else {
      state.records.down.garbage.append(content)
      return outcome
    }
    var row = before ?? DownTableRow(table: table, shape: 0)
    (row.shape, row.sequence) = (DownTableRow.shape(of: target.table), sequence)
    (row.heldTime, outcome.executed) = (transaction.unixMilliseconds, stage.rows)
    let isRead = target.table.direction == .down
    (row.content, row.rows) = isRead ? (content, stage.rows) : (0, 0)
    state.records.down[table] = row
    if isRead {
      try swap(before, table, content, target, &outcome)
    } else {
      try merge(table, content, target, &outcome)
    }
    try StoreComparison(transaction, target.namespace).keep(outcome.kept, of: target.table.name)
    for old in [isRead ? nil : content, before?.content] {
      if let old, old > 0 { state.records.down.garbage.append(old) }
    }
    state.records[table].generation += 1
    outcome.changed.insert(target.table.name)
    return outcome
  }

  /// A store that tells no identity is not believed that a whole table is gone.
  /// - Parameter lacking: records that the answer lacks. - Parameter held: records that the server had.
  private func takesAbsence(_ target: DownTarget, lacking: Int, of held: Int) -> Bool {
    state.records.takesAbsence(target, state.names) && (target.store != nil || lacking < held)
  }

  /// A record that the new table does not have was deleted, if its absence is believed; else it is taken along.
  private func swap(
    _ before: DownTableRow?, _ table: Int, _ content: Int64, _ target: DownTarget, _ outcome: inout DownOutcome
  ) throws(SQLiteError) {
    var cascade = DownCascade(transaction, target)
    guard let before, before.content > 0 else { return }
    let old = before.content
    let lacking = try transaction.statement(DownStatement.missingCount).bind([":old": old, ":new": content])
    let isTaken = takesAbsence(target, lacking: Int(try lacking.firstInt() ?? 0), of: before.rows)
    guard !isTaken || cascade.isReferredTo(target.table.name) else { return }
    var after = ""
    while true {
      let missing = try transaction.statement(DownStatement.missing).bind([
        ":old": old, ":new": content, ":after": after,
      ])
      let gone = try missing.values(of: DownStatement.Key.self) { RecordID($0.text(.id)) }
      guard let last = gone.last else { break }
      after = last.text
      for id in gone {
        if isTaken {
          try cascade.follow([id], of: target.table.name)
        } else {
          try keep(id, of: old, in: content, target)
        }
      }
      if !isTaken { outcome.kept += gone.count }
    }
    state.records.down[table]?.rows += outcome.kept
    outcome.changed.formUnion(cascade.changed)
  }

  private func keep(_ id: RecordID, of old: Int64, in content: Int64, _ target: DownTarget) throws(SQLiteError) {
    guard let row = try rows.find(id, in: old) else { throw .invalidContent }
    let kept = DownRecordRow(row.record, content: content, version: row.version)
    guard try rows.insert(kept, of: target.table) else { throw .invalidContent }
  }

  /// Brings the records of a `both` table in step with the content.
  private func merge(
    _ table: Int, _ content: Int64, _ target: DownTarget, _ outcome: inout DownOutcome
  ) throws(SQLiteError) {
    var merging = DownMerging(transaction, target, table: table)
    var cascade = DownCascade(transaction, target)
    var after = ""
    while true {
      let differing = try transaction.statement(DownStatement.differing).bind([
        ":tab": table, ":content": content, ":after": after,
      ])
      let changes = try differing.records(of: DownRecordRow.self).map(\.record)
      guard let last = changes.last else { break }
      after = last.id.text
      for change in changes {
        // Every reason to stop was looked at before.
        if case .stopped = try merging.put(change, isSnapshot: true) { throw .invalidContent }
      }
    }
    let lacking = try transaction.statement(DownStatement.unknownCount).bind([":tab": table, ":content": content])
    let (lacked, held) =
      try lacking.first(of: DownStatement.Counts.self) { ($0.int(.lacking), $0.int(.held)) } ?? (0, 0)
    let isTaken = takesAbsence(target, lacking: lacked, of: held)
    if !isTaken { outcome.kept = lacked }
    var number: Int64 = 0
    while isTaken {
      let unknownThere = try transaction.statement(DownStatement.unknownThere).bind([
        ":tab": table, ":content": content, ":after": number,
      ])
      let unknown = try unknownThere.values(of: DownStatement.Key.self) { $0.int64(.number) }
      guard let last = unknown.last else { break }
      number = last
      for record in unknown {
        guard let record = try access.record(record) else { throw .invalidContent }
        if case .gone(let ids) = try merging.delete(record, at: nil) { try cascade.follow(ids, of: target.table.name) }
      }
    }
    outcome.clashes = merging.clashes
    outcome.changed.formUnion(cascade.changed)
  }

  // MARK: Declarations

  /// Forgets what was fetched for tables that the server does not change any more, and asks again for all records of a
  /// table that was declared in another way. Programs read the old ones until then.
  func keep(_ tables: [RecordTable], of namespace: NamespaceName) {
    guard let namespace = state.names.number(of: namespace) else { return }
    let declared = Dictionary(tables.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    for table in state.records.tables(of: namespace) {
      guard let standing = state.records.down[table.number] else { continue }
      let shape = declared[table.name].flatMap { $0.direction.isPulled ? DownTableRow.shape(of: $0) : nil }
      if shape == nil {
        state.records.down[table.number] = nil
        if standing.content > 0 { state.records.down.garbage.append(standing.content) }
      } else if shape != standing.shape, standing.sequence != nil {
        state.records.down[table.number]?.sequence = nil
      }
    }
  }

  func forgetSequence(of table: RecordTableName, in namespace: NamespaceName) {
    guard let number = access.table(table, of: namespace), state.records.down[number]?.sequence != nil else { return }
    state.records.down[number]?.sequence = nil
  }
}
