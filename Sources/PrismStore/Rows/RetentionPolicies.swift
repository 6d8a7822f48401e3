import Glibc
import PrismBase
import PrismProtocol
import PrismSQLite

/// Applies the configuration's policies to the namespaces that have rows, each in a transaction of its own.
struct RetentionPolicies {
  private let file: DatabaseFile
  init(_ file: DatabaseFile) { self.file = file }

  private var memory: StoreMemory { file.memory }

  /// Takes new policies. Namespaces without one are retired: their rows expire as they would have.
  func apply(_ policies: [NamespaceName: RetentionPolicy]) throws(StoreError) {
    if let folder = policies.values.compactMap(\.memoryFolder).first { try useMemory(in: folder) }
    let before = memory.policies.all
    memory.policies.all = policies
    for (namespace, policy) in policies.sorted(by: { $0.key < $1.key }) {
      guard let number = memory.state.names.number(of: namespace) else { continue }
      try file.write { (transaction) throws(SQLiteError) in try Retention(transaction).apply(policy, number) }
    }
    for (number, namespace) in memory.state.names.namespaces where policies[namespace] == nil {
      memory.policies.all[namespace] = try file.write { (transaction) throws(SQLiteError) in
        try Retention(transaction).retire(number, before[namespace])
      }
    }
  }

  /// Keeps reports in memory from now on, in a file of `folder`. All that another folder holds is lost.
  private func useMemory(in folder: String) throws(StoreError) {
    let known = try file.read { (transaction) throws(SQLiteError) in
      try transaction.database.connection.fact(MemoryDatabase.folderKey)
    }
    guard !memory.state.memory.isAttached || known != folder else { return }
    if memory.state.memory.isAttached, let open = file.open {
      try? MemoryDatabase(open.connection, file.options)?.remove()
    }
    if known != folder {
      try file.write { (transaction) throws(SQLiteError) in
        try transaction.database.connection.setFact(MemoryDatabase.folderKey, folder)
      }
    }
    file.close()  // opened again it has the file
    try file.read { (_) throws(SQLiteError) in }
  }

  /// Looks for the folder again, if it was missing.
  func findMemory() throws(StoreError) {
    guard !memory.state.memory.isAttached, let folder = memory.policies.all.values.compactMap(\.memoryFolder).first,
      access(folder, W_OK) == 0
    else { return }
    try useMemory(in: folder)
  }

  /// One slice of every namespace's expiry. - Returns: whether there may be more.
  func expireSlice() throws(StoreError) -> Bool {
    var isMore = false
    for (namespace, policy) in memory.policies.all.sorted(by: { $0.key < $1.key }) {
      guard let number = memory.state.names.number(of: namespace) else { continue }
      let slice = try expireSlice(number, policy)
      memory.policies.expiring[namespace, default: PolicyState.Dropped()] += slice.dropped
      isMore = isMore || slice.isMore
      if !slice.isMore, let dropped = memory.policies.expiring.removeValue(forKey: namespace), dropped.rows > 0 {
        tell(dropped, of: namespace, policy)
      }
    }
    return isMore
  }

  private func expireSlice(
    _ namespace: Int, _ policy: RetentionPolicy
  ) throws(StoreError) -> (dropped: PolicyState.Dropped, isMore: Bool) {
    var (dropped, isMore) = (PolicyState.Dropped(), false)
    if QueueID.all(of: namespace).contains(where: { memory.state[$0].ledger[.dead] > 0 }) {
      dropped += try file.write { (transaction) throws(SQLiteError) in
        try DeadLetters(transaction).expire(namespace, before: Retention(transaction).expiryEnd(policy))
      }
      isMore = dropped.rows >= Retention.sliceRowsMax
    }
    for queue in QueueID.all(of: namespace) where memory.state[queue].ledger[.waiting] > 0 {
      let rows = try file.write { (transaction) throws(SQLiteError) in
        let retention = Retention(transaction)
        return try retention.expire(queue, before: retention.expiryEnd(policy))
      }
      dropped += rows
      isMore = isMore || rows.rows >= Retention.sliceRowsMax
    }
    for queue in memory.state.queues(of: namespace) where memory.state[queue].ledger[.kept] > 0 {
      try file.write { (transaction) throws(SQLiteError) in
        try Ring(transaction).age(queue, hours: policy.ringHours)
      }
    }
    return (dropped, isMore)
  }

  /// All of a namespace's rows that were due are gone.
  private func tell(_ dropped: PolicyState.Dropped, of namespace: NamespaceName, _ policy: RetentionPolicy) {
    let now = memory.held.time(memory.time.uptime)
    let heldHours = (now - (memory.held.heldSince(dropped.oldestSequence) ?? now)) / 3_600_000
    memory.policies.expiries[namespace] = Expiry(
      rows: dropped.rows, unixMilliseconds: memory.time.unixMilliseconds, heldHours: Int(heldHours))
    memory.log.warning(
      "reports expired: they were held for longer than expirationDay says and not delivered",
      [
        "namespace": namespace.text, "rows": String(dropped.rows), "held_hours": String(heldHours),
        "expiration_days": String(policy.expirationDays),
      ])
  }
}
