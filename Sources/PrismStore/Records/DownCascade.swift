import PrismProtocol
import PrismSQLite

/// Deletes the records that refer to deleted ones, in the same transaction. Those of `both` tables are deleted as a program
/// would, so that the server learns of it. Records of `up` tables stay.
struct DownCascade: StoreOperations {
  let transaction: StoreTransaction
  private let target: DownTarget
  private var open: [(table: RecordTableName, ids: Set<RecordID>)] = []
  /// Tables of records that were deleted.
  private(set) var changed: Set<RecordTableName> = []

  init(_ transaction: StoreTransaction, _ target: DownTarget) {
    (self.transaction, self.target) = (transaction, target)
  }

  /// Records of a table refer to records of `table`.
  func isReferredTo(_ table: RecordTableName) -> Bool {
    target.tables.contains { $0.direction.isPulled && $0.references.values.contains(table) }
  }

  /// - Parameter ids: by which others may refer to a record that is gone.
  mutating func follow(_ ids: Set<RecordID>, of table: RecordTableName) throws(SQLiteError) {
    open.append((table, ids))
    while let (table, ids) = open.popLast() {
      for holder in target.tables where holder.references.values.contains(table) {
        guard let number = access.table(holder.name, of: target.namespace) else { continue }
        switch holder.direction {
        case .up: break
        case .down: try deleteRows(of: holder, number, referringTo: ids, of: table)
        case .both: try deleteRecords(of: holder, number, referringTo: ids, of: table)
        }
      }
    }
  }

  private mutating func deleteRows(
    of holder: RecordTable, _ number: Int, referringTo ids: Set<RecordID>, of table: RecordTableName
  ) throws(SQLiteError) {
    guard let content = state.records.down[number]?.content, content > 0 else { return }
    for id in ids {
      for found in try rows.referring(to: id, of: table, in: content) {
        guard let row = try rows.find(found, in: content) else { throw .invalidContent }
        try rows.remove(row, of: holder)
        state.records.down[number]?.rows -= 1
        state.records.change(found, in: number)
        note(holder.name, [found])
      }
    }
  }

  private mutating func deleteRecords(
    of holder: RecordTable, _ number: Int, referringTo ids: Set<RecordID>, of table: RecordTableName
  ) throws(SQLiteError) {
    let known = ids.sorted()
    for field in holder.references.filter({ $0.value == table }).keys.sorted() {
      var after: Int64 = 0
      while true {
        let referring = try transaction.statement(DownStatement.referring).bind([
          ":tab": number, ":after": after, ":field": field, ":id": known.first?.text, ":server_id": known.last?.text,
        ])
        let found = try referring.values(of: DownStatement.Key.self) { $0.int64(.number) }
        guard let last = found.last else { break }
        after = last
        for record in found {
          guard let record = try access.record(record) else { throw .invalidContent }
          try RecordChanges(transaction).delete(record)
          note(holder.name, [record.id, record.knownID])
        }
      }
    }
  }

  private mutating func note(_ table: RecordTableName, _ ids: Set<RecordID>) {
    changed.insert(table)
    open.append((table, ids))
  }
}
