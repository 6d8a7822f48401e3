public import PrismProtocol
import PrismSQLite

/// A record whose last change the server refused; it waits until the record is changed again.
public struct RefusedRecord: Sendable, Equatable {
  /// Its number in the database, by which pages go on.
  public var number: Int64
  /// The namespace and the table of the record.
  public var namespace: NamespaceName, table: RecordTableName
  /// The record, with the server's words.
  public var record: StoredRecord
}

/// Lists refused records for operators.
struct RefusedRecords: StoreOperations {
  let transaction: StoreTransaction
  init(_ transaction: StoreTransaction) { self.transaction = transaction }

  /// In the order of their numbers. - Parameter after: the last number seen; 0 for the first page.
  func page(of namespace: NamespaceName?, after: Int64, limit: Int) throws(SQLiteError) -> [RefusedRecord] {
    // A table without refused changes is not looked at; the index holds refused records only.
    let tables = state.records.tables.values.filter { $0.ledger[.dead] > 0 }
    var found: [RefusedRecord] = []
    for table in tables.sorted(by: { $0.number < $1.number }) {
      guard let name = state.names.namespaces[table.namespace], namespace == nil || namespace == name else { continue }
      let select = try transaction.statement(.records(.refused)).bind([
        ":tab": table.number, ":after": after, ":limit": limit,
      ])
      found += try select.records(of: RecordRow.self).map {
        RefusedRecord(number: $0.number, namespace: name, table: table.name, record: $0.value)
      }
    }
    return Array(found.sorted { $0.number < $1.number }.prefix(limit))
  }
}
