import PrismProtocol
import PrismSQLite

/// Lets kept reports go in the transaction of the report that fires a trigger: from then on they are `waiting`, and nothing
/// overwrites them.
struct Triggers: StoreOperations {
  /// The newest kept reports that one firing looks at: some milliseconds.
  private static let rowsLookedAtMax = 20_000
  private static let dayMilliseconds: Int64 = 86_400_000

  let transaction: StoreTransaction
  private let namespace: Int
  private let metas: QueueID, payloads: QueueID

  init(_ transaction: StoreTransaction, _ namespace: Int) {
    (self.transaction, self.namespace) = (transaction, namespace)
    metas = QueueID(namespace: namespace, kind: .meta)
    payloads = QueueID(namespace: namespace, kind: .payload)
  }

  /// Looks at the reports of a batch that were stored. - Returns: whether rows were let go.
  func look(at batch: ReportBatch, _ outcome: BatchOutcome, by rules: [ReportTrigger]) throws(SQLiteError) -> Bool {
    var hasReleased = false
    let exceptions = Set(outcome.exceptions.map(\.row))
    for rule in rules {
      let before = state.counts.triggers[namespace]?[rule.name] ?? TriggerState()
      let isLookedAt = batch.types.contains { $0.type == rule.on || $0.isKept && before.after > 0 }
      guard isLookedAt else { continue }
      var run = before
      for (index, row) in batch.rows.enumerated() where !exceptions.contains(index) {
        try look(at: row, outcome.ids[index], batch, rule, &run)
      }
      guard run != before else { continue }
      hasReleased = hasReleased || run.rows != before.rows
      state.counts.triggers[namespace, default: [:]][rule.name] = run
      try transaction.statement(.names(.writeNote)).run(
        inserting: NoteRecord(namespace: namespace, key: TriggerState.keyPrefix + rule.name, value: run.note))
    }
    return hasReleased
  }

  private func look(
    at row: ReportBatch.Row, _ id: RowID, _ batch: ReportBatch, _ rule: ReportTrigger, _ run: inout TriggerState
  ) throws(SQLiteError) {
    let type = batch.types[row.type]
    func value(_ key: String) -> JSONValue? {
      Enriching.value(key, in: Array(batch.arena[row.body]))
        ?? (row.isSelfContained ? nil : Enriching.value(key, in: batch.context.members))
    }
    if run.after > 0, type.isKept, rule.lets(type.type), rule.same.map({ value($0)?.text }) ?? nil == run.same {
      let bytes = RepeatedRows.bytes(of: row)
      run.after -= 1
      let members = IDRuns(id.value)
      if try isWithin(rule, bytes, &run) { run.rows += try letGo(members, rule) } else { run.overBudget += 1 }
    }
    guard type.type == rule.on, rule.condition?.isMet(by: rule.field.flatMap(value)) ?? true, isDue(rule, &run) else {
      return
    }
    try fire(rule, before: id, same: rule.same.map { value($0)?.text } ?? nil, &run)
  }

  /// Whether enough came in time, and the last time is long enough ago.
  private func isDue(_ rule: ReportTrigger, _ run: inout TriggerState) -> Bool {
    let now = transaction.heldTime
    if now - run.countBegan >= Int64(rule.seconds) * 1000 { (run.countBegan, run.count) = (now, 0) }
    run.count += 1
    guard run.count >= rule.count else { return false }
    run.count = 0
    if let last = run.lastFired, now - last < Int64(rule.everySeconds) * 1000 {
      run.tooSoon += 1
      return false
    }
    return true
  }

  private func isWithin(_ rule: ReportTrigger, _ bytes: Int, _ run: inout TriggerState) throws(SQLiteError) -> Bool {
    let now = transaction.heldTime
    if now - run.dayBegan >= Self.dayMilliseconds { (run.dayBegan, run.dayBytes) = (now, 0) }
    guard run.dayBytes + bytes <= rule.bytesMax else { return false }
    run.dayBytes += bytes
    return true
  }

  private func fire(
    _ rule: ReportTrigger, before last: RowID, same: String?, _ run: inout TriggerState
  ) throws(SQLiteError) {
    var (ids, isCut, looked): ([Int64], Bool, Int) = ([], false, 0)
    let end = RowID(priority: .kept, sequence: last.sequence + 1).value
    for place in state[metas].segments.list.indices.reversed()
    where rule.before > 0 && !isCut && (state[metas].segments[place].kept?.rows ?? 0) > 0 {
      let table = RowTable(metas, number: state[metas].segments[place].number)
      let rows = try transaction.statement(.rows(.walkBack, table)).bind([":end": end])
      defer { rows.reset() }
      while ids.count < rule.before, looked < Self.rowsLookedAtMax, let row = try rows.next(of: StoredRow.Column.self) {
        looked += 1
        let stored = StoredRow(row, hasPayload: false)
        guard !state[metas].isLeaving(stored.id), let type = state.names.types[stored.type], rule.lets(type),
          try shares(same, rule, stored)
        else { continue }
        guard try isWithin(rule, try bytes(of: stored), &run) else {
          isCut = true
          break
        }
        ids.append(stored.id)
      }
    }
    if isCut { run.overBudget += 1 }
    guard !ids.isEmpty || !isCut else { return }
    var members = IDRuns()
    for id in ids.reversed() { try members.append(read: id) }
    run.rows += try letGo(members, rule)
    (run.fired, run.lastFired) = (run.fired + 1, transaction.heldTime)
    (run.after, run.same) = (rule.after, same)
  }

  /// Whether a kept report has the value of the rule's member.
  private func shares(_ value: String?, _ rule: ReportTrigger, _ row: StoredRow) throws(SQLiteError) -> Bool {
    guard let key = rule.same else { return true }
    if let own = Enriching.value(key, in: Array(row.body)) { return own.text == value }
    guard let rendering = try transaction.rendering(of: row, metas) else { return false }
    return Enriching.value(key, in: rendering.context)?.text == value
  }

  private func bytes(of row: StoredRow) throws(SQLiteError) -> Int {
    guard state[payloads].ledger[.kept] > 0 else { return Int(row.size) }
    let member = IDRuns(row.id)
    return Int(row.size) + (try transaction.bytes(of: member, payloads))
  }

  /// - Returns: how many rows of both kinds were kept until now.
  private func letGo(_ members: IDRuns, _ rule: ReportTrigger) throws(SQLiteError) -> Int {
    var withPayload = IDRuns()
    if state[payloads].ledger[.kept] > 0 {
      for id in members.ids {
        let member = IDRuns(id)
        if state[payloads].isLeaving(id) { continue }
        if try transaction.bytes(of: member, payloads) > 0 { withPayload.append(id) }
      }
    }
    for (queue, members) in [(metas, members), (payloads, withPayload)] where !members.isEmpty {
      try Ring(transaction).forget(members, queue, to: .waiting)
      try transaction.letGo(members, queue, by: rule.name)
    }
    return members.count + withPayload.count
  }
}
