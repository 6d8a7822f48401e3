import PrismProtocol
import PrismSQLite

/// Counts what filters kept from becoming a row, in the transaction of the reports that came with it.
struct Filtered {
  private let transaction: StoreTransaction
  init(_ transaction: StoreTransaction) { self.transaction = transaction }

  func count(_ counts: FilterCounts, namespace: Int) throws(SQLiteError) {
    guard counts != FilterCounts() else { return }
    let memory = transaction.memory
    let sum = memory.state.filtered[namespace].map { $0 + counts } ?? counts
    memory.state.filtered[namespace] = sum
    try transaction.statement(.names(.writeNote)).run(
      inserting: NoteRecord(namespace: namespace, key: FilterCounts.key, value: sum.note))
  }
}

extension FilterCounts {
  fileprivate static func + (a: Self, b: Self) -> Self {
    var sum = a
    sum.add(b)
    return sum
  }
}
