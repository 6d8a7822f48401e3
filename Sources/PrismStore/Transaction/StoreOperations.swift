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
}
