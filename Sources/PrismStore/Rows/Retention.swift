import PrismProtocol
import PrismSQLite

/// Removes rows that the configuration no longer keeps: another version of the app, a smaller limit, their age.
struct Retention: PlainOperations {
  /// Rows that one slice looks at and deletes at most, so that other work on the store's queue does not wait long.
  static let sliceRowsMax = 5000

  let transaction: StoreTransaction

  // MARK: A new policy

  /// Clears rows that another `appVersion` stored, drops payloads over the new limit, and notes the policy.
  func apply(_ policy: RetentionPolicy, _ namespace: Int) throws(SQLiteError) {
    if try isCleared(namespace, policy) { try clear(namespace) }
    try dropLargePayloads(namespace, policy)
    try transaction.note(policy, namespace)
  }

  /// Notes when the rows of a namespace that is no longer configured expire: at the same age as before.
  /// - Parameter before: the policy until now, if this run knows it.
  func retire(_ namespace: Int, _ before: RetentionPolicy?) throws(SQLiteError) -> RetentionPolicy {
    let noted = try transaction.number(.expirationDays, namespace)
    let days = before?.expirationDays ?? noted ?? RetentionPolicy.expirationDaysStandard
    try transaction.note(days, .expirationDays, namespace)
    let notedHours = try transaction.number(.ringHours, namespace)
    let hours = before?.ringHours ?? notedHours ?? RetentionPolicy.ringHoursStandard
    try transaction.note(hours, .ringHours, namespace)
    return RetentionPolicy(
      expirationDays: days, isUpdateClear: false, appVersion: nil, maxBodyBytes: .max, ringHours: hours)
  }

  // MARK: Another version, a smaller limit

  /// Whether the waiting rows were stored under another version of the app, and are to be cleared.
  func isCleared(_ namespace: Int, _ policy: RetentionPolicy) throws(SQLiteError) -> Bool {
    guard policy.isUpdateClear, let version = policy.appVersion else { return false }
    return try transaction.version(namespace).map { $0 != Array(version.utf8) } ?? false
  }

  private func clear(_ namespace: Int) throws(SQLiteError) {
    for queue in QueueID.all(of: namespace) {
      while try dropOldest(queue, rowsMax: Self.sliceRowsMax, to: .cleared).rows > 0 {}
    }
  }

  func dropLargePayloads(_ namespace: Int, _ policy: RetentionPolicy) throws(SQLiteError) {
    guard let before = try transaction.number(.maxBodyBytes, namespace), policy.maxBodyBytes < before else { return }
    for queue in state.queues(of: namespace) where queue.kind.hasPayload {
      var large: [(id: Int64, size: Int)] = []
      for table in state[queue].segments.tables(queue) {
        let rows = try transaction.statement(.rows(.largePayloads, table)).bind([":max": policy.maxBodyBytes])
        try rows.forEachRow(of: RowHead.Column.self) { row in
          guard state[queue].leftRun(of: row.int64(.id)) == nil else { return }
          large.append((row.int64(.id), row.int(.size)))
        }
      }
      try transaction.drop(large, queue, to: .removed)
    }
  }

  // MARK: Age

  /// Rows below this sequence are held for longer than the policy keeps rows.
  func expiryEnd(_ policy: RetentionPolicy) -> Int64 {
    transaction.memory.held.end(heldFor: policy.expirationDays, transaction.uptime)
  }

  /// Drops waiting rows below the sequence `end`; the rows of a priority are in the order of their age.
  func expire(_ queue: QueueID, before end: Int64, rowsMax: Int = sliceRowsMax) throws(SQLiteError)
    -> PolicyState.Dropped
  {
    var dropped = try dropOldest(queue, rowsMax: rowsMax, to: .expired) { RowID(value: $0.id).sequence < end }
    let old = state[queue].releases.flatMap(\.members.ids).filter { RowID(value: $0).sequence < end }.prefix(rowsMax)
    guard let first = old.min() else { return dropped }
    try transaction.drop(old.map { (id: $0, size: 0) }, queue, to: .expired)
    dropped += PolicyState.Dropped(rows: old.count, oldestSequence: RowID(value: first).sequence)
    return dropped
  }

  /// Drops up to `rowsMax` of the oldest waiting rows, the first priority first.
  @discardableResult
  private func dropOldest(
    _ queue: QueueID, rowsMax: Int, to account: Ledger.Account, while isWanted: (RowHead) -> Bool = { _ in true }
  ) throws(SQLiteError) -> PolicyState.Dropped {
    var dropped = PolicyState.Dropped()
    for priority in Priority.leaving {
      var (members, bytes) = (IDRuns(), 0)
      try transaction.walkWaiting(priority, queue) { row in
        guard members.count < rowsMax, isWanted(row) else { return false }
        members.append(row.id)
        bytes += row.size
        return true
      }
      try transaction.drop(members, bytes: bytes, queue, to: account)
      if let first = members.runs.first?.first {
        dropped += PolicyState.Dropped(rows: members.count, oldestSequence: RowID(value: first).sequence)
      }
      if members.count == rowsMax { break }
    }
    return dropped
  }
}
