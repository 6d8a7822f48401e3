import PrismProtocol
import PrismSQLite

/// Executes the server's operations, each once: they and the number of the last one are one transaction.
struct DownApplying: StoreOperations {
  let transaction: StoreTransaction
  private let target: DownTarget

  init(_ transaction: StoreTransaction, _ target: DownTarget) {
    (self.transaction, self.target) = (transaction, target)
  }

  /// Executes operations in their order, up to the first that must wait.
  func apply(_ page: DownPage) throws(SQLiteError) -> DownOutcome {
    guard let number = access.table(target.table.name, of: target.namespace),
      let standing = state.records.down[number], standing.sequence == page.after,
      standing.shape == DownTableRow.shape(of: target.table)
    else { return DownOutcome(.outdated) }
    guard !state.records.isOvertaken(target, table: number) else { return DownOutcome(.overtaken) }
    guard state.records.isMet(target, state.names) else { return DownOutcome(.outdated) }
    let takesDeletions =
      target.store == nil || state.records.store(of: target.namespace, state.names)?.isTrusted != false
    var (outcome, sequence) = (DownOutcome(.done), page.after)
    var merging = DownMerging(transaction, target, table: number)
    var cascade = DownCascade(transaction, target)
    var (executed, gone): (Set<String>, [Set<RecordID>]) = ([], [])
    let lastPuts = Self.lastPuts(page.operations)
    for operation in page.operations {
      if let needed = operation.dependsOn, !executed.contains(needed), page.othersThrough < operation.sequence - 1 {
        outcome.end = .waits(before: operation.sequence)
        break
      }
      if operation.kind == .delete, !takesDeletions {
        try StoreComparison(transaction, target.namespace).refuseDeletion(of: target.table.name)
        executed.insert(operation.op)
        sequence = operation.sequence
        continue
      }
      let comesBack = operation.sequence < lastPuts[operation.id] ?? 0
      let result =
        target.table.direction == .both
        ? try merge(operation, comesBack, &merging)
        : try write(operation, comesBack, table: number, content: standing.content)
      if case .stopped(let end) = result {
        outcome.end = end
        break
      }
      if case .gone(let ids) = result { gone.append(ids) }
      executed.insert(operation.op)
      sequence = operation.sequence
    }
    // A record that refers to another one by the end is not taken along.
    for ids in gone { try cascade.follow(ids, of: target.table.name) }
    (outcome.executed, outcome.clashes) = (executed.count, merging.clashes)
    if outcome.end == .done { sequence = page.sequence }
    if sequence != page.after { state.records.down[number]?.sequence = sequence }
    if outcome.end == .done { hold(number) }
    guard !executed.isEmpty else { return outcome }
    outcome.changed = cascade.changed.union([target.table.name])
    return outcome
  }

  /// The number of the last operation that puts each record. A deletion before it changes nothing: the record comes back,
  /// and another table may be ahead and refer to it. So it also is if the execution stops between the two.
  private static func lastPuts(_ operations: [DownOperation]) -> [RecordID: Int64] {
    operations.reduce(into: [:]) { last, operation in
      if operation.kind != .delete { last[operation.id] = operation.sequence }
    }
  }

  /// The age of a table costs a write once an hour at most.
  private func hold(_ table: Int) {
    let now = transaction.unixMilliseconds
    let isOld = abs(now - (state.records.down[table]?.writtenTime ?? 0)) >= 3_600_000
    if isOld || state.records.down.touched.contains(table) {
      state.records.down[table]?.heldTime = now
    } else {
      state.records.down.hold(table, at: now)
    }
  }

  private func merge(
    _ operation: DownOperation, _ comesBack: Bool, _ merging: inout DownMerging
  ) throws(SQLiteError) -> DownMerging.Result {
    if operation.kind == .delete {
      if comesBack { return try merging.keep(operation.id, operation.localID) }
      return try merging.delete(operation.id, operation.localID, at: operation.time)
    }
    let record = DownRecord(
      id: operation.id, localID: operation.localID, fields: operation.fields, time: operation.time)
    return try merging.put(record, isSnapshot: false)
  }

  /// Into a table that only the server changes.
  private func write(
    _ operation: DownOperation, _ comesBack: Bool, table: Int, content: Int64
  ) throws(SQLiteError) -> DownMerging.Result {
    guard content > 0 else { return .stopped(.outdated) }
    let before = try rows.find(operation.id, in: content)
    if operation.kind == .delete {
      guard let before, !comesBack else { return .done }
      try rows.remove(before, of: target.table)
      state.records.down[table]?.rows -= 1
      state.records.change(operation.id, in: table)
      return .gone([operation.id])
    }
    let row = DownRecordRow(
      content: content, id: operation.id, localID: operation.localID, version: operation.sequence,
      time: operation.time, fields: operation.fields)
    if let before {
      try rows.replace(before, with: row, of: target.table)
      state.records.change(operation.id, in: table)
      return .done
    }
    guard let held = state.records.down[table]?.rows, held < target.table.maxRecord else { return .stopped(.tableFull) }
    guard try rows.insert(row, of: target.table) else { throw .invalidContent }
    state.records.down[table]?.rows += 1
    state.records.change(operation.id, in: table)
    return .done
  }
}
