import PrismProtocol
import PrismSQLite

// Report ids that clients gave.
extension StoreTransaction {
  /// The ids of those of `members` that have one, as keys of `client_ids`.
  func clientIDs(of members: IDRuns, _ queue: QueueID) throws(SQLiteError) -> [(row: Int64, key: String)] {
    var result: [(row: Int64, key: String)] = []
    try forEachRun(of: members, queue, .clientIDsInRange) { (find) throws(SQLiteError) in
      result += try clientIDs(find, queue.namespace).map { ($0.row, $0.key) }
    }
    return result
  }

  /// Those of a whole table.
  func clientIDs(in table: RowTable) throws(SQLiteError) -> [(row: Int64, key: String, context: Int64)] {
    let find = try statement(.rows(.clientIDsInRange, table)).bind([":first": Int64.min, ":last": Int64.max])
    return try clientIDs(find, table.queue.namespace)
  }

  private func clientIDs(
    _ find: SQLiteStatement, _ namespace: Int
  ) throws(SQLiteError) -> [(row: Int64, key: String, context: Int64)] {
    var result: [(row: Int64, key: String, context: Int64)] = []
    try find.forEachRow(of: RowStatement.ClientIDColumn.self) { (row) throws(SQLiteError) in
      let (id, reportID, context) = (row.int64(.id), row.text(.reportID), row.int64(.context))
      if let owner = try owner(context, namespace: namespace) {
        result.append((id, ClientIDKey.text(reportID, owner), context))
      } else {  // its context is damaged
        let holders = try holders(of: reportID, namespace)
        result += holders.filter { $0.row == id }.map { (id, $0.key, context) }
      }
    }
    return result
  }

  /// The row that has the id. - Parameter key: in the form of `ClientIDKey`.
  func row(ofClientID key: UnsafeRawBufferPointer, _ namespace: Int) throws(SQLiteError) -> Int64? {
    for ids in ClientIDStatement.all(inMemory: state.usesMemory(namespace)) {
      let find = try statement(ids.find).bind([":namespace": namespace])
      find.bind(":key", uncopiedText: key)
      if let row = try find.firstInt() { return row }
    }
    return nil
  }

  func row(ofClientID key: String, _ namespace: Int) throws(SQLiteError) -> Int64? {
    try Array(key.utf8).withUnsafeBufferPointer { (bytes) throws(SQLiteError) in
      try row(ofClientID: UnsafeRawBufferPointer(bytes), namespace)
    }
  }

  func holders(of reportID: String, _ namespace: Int) throws(SQLiteError) -> [ClientIDRecord] {
    var holders: [ClientIDRecord] = []
    for ids in ClientIDStatement.all(inMemory: state.usesMemory(namespace)) {
      let find = try statement(ids.holders).bind([":namespace": namespace, ":key": reportID])
      holders += try find.values(of: ClientIDRecord.Column.self) { ClientIDRecord($0) }
    }
    return holders
  }

  func freeClientIDs(of members: IDRuns, _ queue: QueueID) throws(SQLiteError) {
    for (row, key) in try clientIDs(of: members, queue) { try freeClientID(key, of: row, queue) }
  }

  /// Forgets the id, so that another report may have it. Keeps it if the report's row of another kind is still held.
  func freeClientID(_ key: String, of row: Int64, _ queue: QueueID) throws(SQLiteError) {
    for kind in RowKind.reports where kind != queue.kind {
      let other = QueueID(namespace: queue.namespace, kind: kind, isInMemory: queue.isInMemory)
      if try isHeldOrDead(row, other) { return }
    }
    try statement(queue.ids.delete).run([":namespace": queue.namespace, ":key": key, ":row": row])
    memory.policies.departures.free(key, of: row, queue.namespace)
  }

  private func isHeldOrDead(_ row: Int64, _ queue: QueueID) throws(SQLiteError) -> Bool {
    if try exists(row, queue) { return true }
    guard state[queue].ledger[.dead] > 0 else { return false }
    return try DeadLetters(self).has(row, queue)
  }
}

/// Ids of reports that left long ago.
struct OldClientIDs: PlainOperations {
  let transaction: StoreTransaction

  /// Forgets ids 24 h after their delivery, unless a row of the report is still held: a payload may be held long after its
  /// meta was delivered.
  func forget(deliveredBefore cutoff: Int64) throws(SQLiteError) {
    for isInMemory in state.memory.isAttached ? [false, true] : [false] {
      let ids = isInMemory ? ClientIDStatement.memory : .disk
      let delivered = try transaction.statement(ids.deliveredBefore).bind([":cutoff": cutoff])
      let old = try delivered.values(of: ClientIDRecord.Column.self) { ClientIDRecord($0) }
      for id in old where try !isHeld(id) {
        try ClientIDBound(transaction).forget(id, QueueID(namespace: id.namespace, kind: .meta, isInMemory: isInMemory))
      }
    }
  }

  private func isHeld(_ id: ClientIDRecord) throws(SQLiteError) -> Bool {
    guard state.names.namespaces[id.namespace] != nil else { return false }
    for queue in state.queues(of: id.namespace) where try transaction.exists(id.row, queue) { return true }
    return false
  }

  /// Notes that no id of an unknown user is left, which needs a look at every id.
  func forgetOwnerless() throws(SQLiteError) {
    let find = "SELECT EXISTS (SELECT 1 FROM client_ids WHERE instr(report_id, ':') = 0)"
    guard try transaction.database.connection.firstInt(find) == 0 else { return }
    try transaction.database.connection.setHasOwnerlessIDs(false)
    state.clientIDs.hasOwnerless = false
  }
}
