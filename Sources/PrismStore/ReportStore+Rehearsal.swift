import PrismBase
import PrismProtocol

// What a configuration would do to the rows that are stored: it is done as it would be, counted, and rolled back.
extension ReportStore {
  /// Others wait for the queue meanwhile: past this no further slice is begun. Exact is what fits into it, some 100,000
  /// rows on a fast disk.
  static let rehearsalMax: Duration = .milliseconds(200)

  /// Nothing of it stays, and nothing of it is written to the disk.
  public func rehearse(
    _ policy: RetentionPolicy, quota: StoreQuota, of namespace: NamespaceName
  ) throws(StoreError) -> RetentionEffects {
    guard let number = state.number(of: namespace) else { return RetentionEffects() }
    return try reading { (database) throws(SQLiteError) in
      if quota.evictsOldest { try countShares(number, database) }
      let before = state
      // What doesn't fit into the cache would go to the log otherwise, and a full disk would fail it.
      try database.connection.execute("PRAGMA cache_spill = OFF")
      try database.statement(.begin).run()
      let effects = try rehearse(policy, quota, number, database)
      database.connection.rollBack()
      state = before
      try database.connection.execute("PRAGMA cache_spill = ON")
      return effects
    }
  }

  private func rehearse(
    _ policy: RetentionPolicy, _ quota: StoreQuota, _ namespace: Int, _ database: StoreDatabase
  ) throws(SQLiteError) -> RetentionEffects {
    let queues = ReportKind.allCases.map { QueueID(namespace: namespace, kind: $0) }
    func rows(_ account: Ledger.Account) -> Int { queues.reduce(0) { $0 + state[$1].ledger[account] } }
    func bytes() -> Int { queues.reduce(0) { $0 + state[$1].bytes } }
    let before = Ledger.Account.allCases.reduce(into: [:]) { $0[$1] = rows($1) }
    var effects = RetentionEffects()
    if try isCleared(namespace, policy, database) {
      effects.cleared = rows(.waiting)  // all of them: the ledger knows
      return effects
    }
    let deadline = options.time.uptime + Self.rehearsalMax
    func isInTime() -> Bool {
      if options.time.uptime >= deadline { effects.isComplete = false }
      return effects.isComplete
    }
    try dropLargePayloads(namespace, policy, database)
    let cutoff = options.time.unixMilliseconds - Int64(policy.expirationDays) * 86_400_000
    for queue in queues {
      while try expire(queue, before: cutoff, rowsMax: Self.evictionRowsMin, database) > 0, isInTime() {}
    }
    if quota.evictsOldest {
      try evict(quota, for: nil, namespace, lanes: Lane.allCases.reversed(), database, while: isInTime)
    }
    func gained(_ account: Ledger.Account) -> Int { rows(account) - (before[account] ?? 0) }
    (effects.removed, effects.expired) = (gained(.removed), gained(.expired))
    (effects.evicted, effects.overQuotaBytes) = (gained(.evicted), max(0, bytes() - quota.bytesMax))
    return effects
  }
}
