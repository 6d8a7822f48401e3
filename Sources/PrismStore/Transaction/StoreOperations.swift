import PrismProtocol

/// Operations of the store that work on one transaction. The types that conform own no state.
protocol StoreOperations {
  var transaction: StoreTransaction { get }
}

extension StoreOperations {
  /// The store's state in memory.
  var state: StoreState {
    _read { yield transaction.memory.state }
    nonmutating _modify { yield &transaction.memory.state }
  }

  /// Bytes of a namespace's rows of all kinds.
  func bytesHeld(_ namespace: Int) -> Int {
    var sum = 0
    for kind in RowKind.reports { sum += state[QueueID(namespace: namespace, kind: kind)].bytes }
    return sum
  }
}
