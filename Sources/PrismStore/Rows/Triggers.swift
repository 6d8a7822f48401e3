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
      let isLookedAt = batch.types.contains { $0.type == rule.on || $0.isKept && before.isFollowed }
      guard isLookedAt else { continue }
      var run = before
      for (index, row) in batch.rows.enumerated() where !exceptions.contains(index) {
        try look(at: row, outcome.ids[index], batch, rule, &run)
      }
      guard run != before else { continue }
      hasReleased = hasReleased || run.rows != before.rows || run.users.contains { $0.value.following.isAsked }
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
    if type.isKept, rule.lets(type.type), let user = follower(row, rule, run, value) {
      run.users[user]?.following.count -= 1
      if isWithin(rule, RepeatedRows.bytes(of: row), of: user, &run) {
        try letGo(IDRuns(id.value), rule, of: user, &run)
      } else {
        run.overBudget += 1
        try refuse([state.names.number(of: type.type) ?? 0: RowCount(rows: 1)])
      }
    }
    guard type.type == rule.on, rule.condition?.isMet(by: rule.field.flatMap(value)) ?? true,
      isDue(rule, of: batch.userID, &run)
    else { return }
    try fire(rule, before: id, same: rule.same.map { value($0)?.text } ?? nil, of: batch.userID, &run)
  }

  /// The user whose report fired the trigger, and whom the report follows.
  private func follower(
    _ row: ReportBatch.Row, _ rule: ReportTrigger, _ run: TriggerState, _ value: (String) -> JSONValue?
  ) -> UInt32? {
    guard run.isFollowed else { return nil }
    let same = rule.same.flatMap { value($0)?.text }
    return run.users.filter { $0.value.following.count > 0 && Self.areEqual(same, $0.value.following.same) }.keys.min()
  }

  /// Whether enough of a user came in time, and the last time is long enough ago.
  private func isDue(_ rule: ReportTrigger, of user: UInt32, _ run: inout TriggerState) -> Bool {
    let now = transaction.heldTime
    let isSoon: Bool? = run.change(user) { user in
      if rule.count > 1 {
        user.count.forget(after: Int64(rule.seconds) * 1000, now)
        user.count.add(1, at: now)
        guard user.count.total >= rule.count else { return nil }
        user.count = SlidingSum()
      }
      return user.lastFired.map { now - $0 < Int64(rule.everySeconds) * 1000 } ?? false
    }
    if isSoon == true { run.tooSoon += 1 }
    return isSoon == false
  }

  /// Whether the bytes go, within a day's of all users and those of this one.
  private func isWithin(_ rule: ReportTrigger, _ bytes: Int, of user: UInt32, _ run: inout TriggerState) -> Bool {
    let now = transaction.heldTime
    for id in run.users.keys { run.users[id]?.bytes.forget(after: Self.dayMilliseconds, now) }
    let taken = run.users.values.reduce(0) { $0 + $1.bytes.total }
    let own = run.users[user]?.bytes.total ?? 0
    guard SharedPlaces(most: rule.bytesMax).hasRoom(for: bytes, taken: taken, own: { own }) else { return false }
    run.change(user) { $0.bytes.add(bytes, at: now) }
    return true
  }

  private func fire(
    _ rule: ReportTrigger, before last: RowID, same: String?, of user: UInt32, _ run: inout TriggerState
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
        guard refused.isEmpty, isWithin(rule, bytes, of: user, &run) else {
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
    run.change(user) {
      $0.following = .init(count: rule.after, same: same, isAsked: rule.devicesMax != nil)
      $0.lastFired = transaction.heldTime
    }
    try letGo(members, rule, of: user, &run)
    run.fired += 1
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

  private func letGo(
    _ members: IDRuns, _ rule: ReportTrigger, of user: UInt32, _ run: inout TriggerState
  ) throws(SQLiteError) {
    let devices = run.users[user]?.following.isAsked == true ? rule.devicesMax ?? 0 : 0
    run.rows += try Ring(transaction).letGo(members, namespace, by: rule.name, devices: devices)
  }
}
