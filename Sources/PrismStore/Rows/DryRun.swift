import PrismProtocol
import PrismSQLite

/// Counts the effects of a configuration on the stored rows: applies it in a transaction, and rolls that back.
struct DryRun: PlainOperations {
  /// Other calls wait meanwhile: after this no further slice is begun. That is enough for about 100,000 rows on a fast disk.
  static let durationMax: Duration = .milliseconds(200)
  private static let sliceRowsMax = 256

  let transaction: StoreTransaction

  /// Leaves everything as it was, and writes nothing to the disk.
  func run(
    _ policy: RetentionPolicy, _ quota: StoreQuota, _ namespace: NamespaceName
  ) throws(SQLiteError) -> RetentionEffects {
    guard let namespace = state.names.number(of: namespace) else { return RetentionEffects() }
    if quota.evictsOldest { try ShareCount(transaction).count(namespace) }
    let (before, connection) = (StoreState(copying: state), transaction.database.connection)
    // Pages that don't fit into the cache would go to the log, and a full disk would fail it.
    try connection.execute("PRAGMA cache_spill = OFF")
    try transaction.statement(SQL.begin).run()
    let effects = try effects(policy, quota, namespace)
    connection.rollBack()
    transaction.memory.state = before
    try connection.execute("PRAGMA cache_spill = ON")
    return effects
  }

  private func effects(
    _ policy: RetentionPolicy, _ quota: StoreQuota, _ namespace: Int
  ) throws(SQLiteError) -> RetentionEffects {
    let (retention, before) = (Retention(transaction), counts(namespace))
    var effects = RetentionEffects()
    if try retention.isCleared(namespace, policy) {
      effects.cleared = before[.waiting] ?? 0  // all of them: the ledger knows
      return effects
    }
    let deadline = transaction.uptime + Self.durationMax
    func isInTime() -> Bool {
      if transaction.uptime >= deadline { effects.isComplete = false }
      return effects.isComplete
    }
    try retention.dropLargePayloads(namespace, policy)
    let end = retention.expiryEnd(policy)
    for queue in QueueID.all(of: namespace) {
      while try retention.expire(queue, before: end, rowsMax: Self.sliceRowsMax).rows > 0, isInTime() {}
    }
    if quota.evictsOldest {
      let priorities: [Priority] = Priority.leaving.reversed()
      try Eviction(transaction).evict(quota, for: nil, namespace, priorities: priorities, while: isInTime)
    }
    let after = counts(namespace)
    func gained(_ account: Ledger.Account) -> Int { (after[account] ?? 0) - (before[account] ?? 0) }
    (effects.removed, effects.expired, effects.evicted) = (gained(.removed), gained(.expired), gained(.evicted))
    effects.overQuotaBytes = max(0, bytesHeld(namespace) - quota.bytesMax)
    return effects
  }

  /// Of all the namespace's rows.
  private func counts(_ namespace: Int) -> [Ledger.Account: Int] {
    var counts: [Ledger.Account: Int] = [:]
    for account in Ledger.Account.allCases {
      counts[account] = state.queues(of: namespace).reduce(0) { $0 + state[$1].ledger[account] }
    }
    return counts
  }
}
