import PrismBase
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
      let isLookedAt = batch.types.contains { $0.type == rule.on || $0.isKept && before.following.count > 0 }
      guard isLookedAt else { continue }
      var run = before
      for (index, row) in batch.rows.enumerated() where !exceptions.contains(index) {
        try look(at: row, outcome.ids[index], batch, rule, &run)
      }
      guard run != before else { continue }
      hasReleased = hasReleased || run.rows != before.rows || run.following.isAsked
      state.counts.triggers[namespace, default: [:]][rule.name] = run
      try transaction.write(run.note, TriggerState.keyPrefix + rule.name, namespace)
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
    if run.following.count > 0, type.isKept, rule.lets(type.type),
      Self.areEqual(rule.same.flatMap { value($0)?.text }, run.following.same)
    {
      let bytes = RepeatedRows.bytes(of: row)
      run.following.count -= 1
      if try isWithin(rule, bytes, &run) {
        try letGo(IDRuns(id.value), rule, &run)
      } else {
        run.overBudget += 1
        try refuse([state.names.number(of: type.type) ?? 0: RowCount(rows: 1)])
      }
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
    var (ids, refused, looked): ([Int64], [Int64: RowCount], Int) = ([], [:], 0)
    var found = 0
    let end = RowID(priority: .kept, sequence: last.sequence + 1).value
    try Ring(transaction).walkKept(
      namespace, before: rule.before > 0 ? end : 0, takesAsked: rule.devicesMax == nil
    ) { (stored, _) throws(SQLiteError) in
      looked += 1
      if rule.lets(state.names.types[stored.type]!), try shares(same, rule, stored) {
        found += 1
        // Those behind the first one that the budget does not allow are counted only.
        let bytes = try Ring(transaction).keptBytes(of: stored, payloads)
        guard refused.isEmpty, try isWithin(rule, bytes, &run) else {
          refused[stored.type, default: RowCount()].rows += 1
          return found < rule.before && looked < Self.rowsLookedAtMax
        }
        ids.append(stored.id)
      }
      return found < rule.before && looked < Self.rowsLookedAtMax
    }
    if !refused.isEmpty { run.overBudget += 1 }
    try refuse(refused)
    guard !ids.isEmpty || refused.isEmpty else { return }
    var members = IDRuns()
    for id in ids.reversed() { try members.append(read: id) }
    run.following = .init(count: rule.after, same: same, isAsked: rule.devicesMax != nil)
    try letGo(members, rule, &run)
    (run.fired, run.lastFired) = (run.fired + 1, transaction.heldTime)
  }

  private func refuse(_ types: [Int64: RowCount]) throws(SQLiteError) {
    try Ring(transaction).note(types, .refused, namespace)
  }

  /// Whether a kept report has the value of the rule's member.
  private func shares(_ value: String?, _ rule: ReportTrigger, _ row: StoredRow) throws(SQLiteError) -> Bool {
    guard let key = rule.same else { return true }
    return Self.areEqual(try Ring(transaction).value(of: key, in: row, metas)?.text, value)
  }

  /// Byte by byte.
  private static func areEqual(_ one: String?, _ other: String?) -> Bool {
    one.map { ExactText($0) } == other.map { ExactText($0) }
  }

  private func letGo(_ members: IDRuns, _ rule: ReportTrigger, _ run: inout TriggerState) throws(SQLiteError) {
    let devices = run.following.isAsked ? rule.devicesMax ?? 0 : 0
    run.rows += try Ring(transaction).letGo(members, namespace, by: rule.name, devices: devices)
  }
}
