import PrismProtocol
import PrismSQLite

/// Applies the configuration's policies to the namespaces that have rows, each in a transaction of its own.
struct RetentionPolicies {
  private let file: DatabaseFile
  init(_ file: DatabaseFile) { self.file = file }

  private var memory: StoreMemory { file.memory }

  /// Takes new policies. Namespaces without one are retired: their rows expire as they would have.
  func apply(_ policies: [NamespaceName: RetentionPolicy]) throws(StoreError) {
    let before = memory.policies
    memory.policies = policies
    for (namespace, policy) in policies.sorted(by: { $0.key < $1.key }) {
      guard let number = memory.state.names.number(of: namespace) else { continue }
      try file.write { (transaction) throws(SQLiteError) in try Retention(transaction).apply(policy, number) }
    }
    for (number, namespace) in memory.state.names.namespaces where policies[namespace] == nil {
      memory.policies[namespace] = try file.write { (transaction) throws(SQLiteError) in
        try Retention(transaction).retire(number, before[namespace])
      }
    }
  }

  /// One slice of every namespace's expiry. - Returns: whether there may be more.
  func expireSlice() throws(StoreError) -> Bool {
    var isMore = false
    for (namespace, policy) in memory.policies.sorted(by: { $0.key < $1.key }) {
      guard let number = memory.state.names.number(of: namespace) else { continue }
      if QueueID.all(of: number).contains(where: { memory.state[$0].ledger[.dead] > 0 }) {
        try file.write { (transaction) throws(SQLiteError) in
          try DeadLetters(transaction).expire(number, before: Retention(transaction).cutoff(policy))
        }
      }
      for queue in QueueID.all(of: number) where memory.state[queue].ledger[.waiting] > 0 {
        let dropped = try file.write { (transaction) throws(SQLiteError) in
          let retention = Retention(transaction)
          return try retention.expire(queue, before: retention.cutoff(policy))
        }
        isMore = isMore || dropped >= Retention.sliceRowsMax
      }
    }
    return isMore
  }
}
