import PrismBase
import PrismProtocol
import PrismSQLite

/// Bounds the ids that are known by time (`KnownIDs`): the users who hold most give way, their oldest ids first. A report that
/// comes again after its id was forgotten so is stored again; `FilterCounts.forgottenIDs` counts them.
struct ClientIDBound: PlainOperations {
  /// Of the quota of the rows, beside it; and the least.
  private static let (share, bytesMin) = (4, 1 << 20)
  /// Forgotten more than is needed, so that the next commits need not.
  private static let spareMax = 256 << 10
  /// One commit deletes no more.
  private static let idsMax = 4096

  let transaction: StoreTransaction

  /// - Returns: how many ids were forgotten.
  func keep(_ quota: StoreQuota, _ namespace: Int) throws(SQLiteError) -> Int {
    let queue = QueueID(namespace: namespace, kind: .meta)
    var forgotten = try keep(quota.bytesMax, queue)
    if state.usesMemory(namespace) { forgotten += try keep(quota.memoryBytesMax, queue.inMemory) }
    if forgotten > 0 {
      transaction.memory.log.fault(
        "clientIDs.\(namespace)", "ids of reports are forgotten early: one that comes again is stored again",
        ["namespace": state.names.namespaces[namespace]?.text ?? ""])
    }
    return forgotten
  }

  private func keep(_ quotaBytes: Int, _ queue: QueueID) throws(SQLiteError) -> Int {
    let bytesMax = max(quotaBytes / Self.share, Self.bytesMin)
    if state.clientIDs.known[queue] == nil {
      let counted = try count(queue)
      state.clientIDs.known[queue] = counted
    }
    guard let known = state.clientIDs.known[queue], known.sum > bytesMax else { return 0 }
    let level = FairShares.level(
      of: Array(known.bytes.values), fitting: bytesMax - min(bytesMax / 8, Self.spareMax))
    var forgotten = 0
    for (owner, bytes) in known.bytes.sorted(by: { $0.value > $1.value }) where bytes > level {
      let since = known.cleared[owner] ?? 0
      forgotten += try forget(bytes - level, of: owner, queue, since: since, Self.idsMax - forgotten)
    }
    return forgotten
  }

  /// Forgets a user's oldest ids.
  private func forget(
    _ excess: Int, of owner: RowOwner, _ queue: QueueID, since: Int64, _ idsMax: Int
  ) throws(SQLiteError) -> Int {
    let find = try transaction.statement(queue.ids.oldest).bind([
      ":namespace": queue.namespace, ":user": "*:\(owner.number)", ":since": since,
      ":limit": max(0, min(idsMax, excess / KnownIDs.bytes(ofKey: 0) + 1)),
    ])
    var (forgotten, left) = (0, excess)
    for id in try find.values(of: ClientIDRecord.Column.self, { ClientIDRecord($0) }) where left > 0 {
      try forget(id, queue)
      (forgotten, left) = (forgotten + 1, left - KnownIDs.bytes(ofKey: id.key.utf8.count))
      state.clientIDs.known[queue]?.clear(owner, before: id.deliveredTime ?? since)
    }
    return forgotten
  }

  /// The report was delivered, or counted on another: its id is known by time from now on.
  func deliver(_ key: UnsafeRawBufferPointer, of owner: RowOwner, _ queue: QueueID) throws(SQLiteError) {
    for (deliver, isFirst) in [(queue.ids.deliver, true), (queue.ids.deliverAgain, false)] {
      let deliver = try transaction.statement(deliver).bind([
        ":namespace": queue.namespace, ":time": transaction.heldTime,
      ])
      deliver.bind(":key", uncopiedText: key)
      try deliver.run()
      guard transaction.database.connection.changes == 0 else {
        if isFirst { state.clientIDs.known[queue.metas]?.add(KnownIDs.bytes(ofKey: key.count), of: owner) }
        return
      }
    }
  }

  /// The id was known by time.
  func forget(_ id: ClientIDRecord, _ queue: QueueID) throws(SQLiteError) {
    try transaction.statement(queue.ids.prune).run([":namespace": id.namespace, ":key": id.key])
    guard let owner = ClientIDKey.userID(id.key).map({ RowOwner(userID: $0) }) else { return }
    state.clientIDs.known[queue.metas]?.add(-KnownIDs.bytes(ofKey: id.key.utf8.count), of: owner)
  }

  private enum CountColumn: String, SQLiteColumn {
    case user = "substr(report_id, instr(report_id, ':') + 1) AS user"
    case ids = "count(*)"
    case bytes = "sum(length(report_id))"
  }

  /// No id that comes is of an unknown user: those become fewer by themselves.
  private func count(_ queue: QueueID) throws(SQLiteError) -> KnownIDs {
    var known = KnownIDs()
    let count = try transaction.prepare(
      """
      SELECT \(CountColumn.list) FROM \(queue.ids.table) WHERE namespace = :namespace AND delivered_time IS NOT NULL
      AND instr(report_id, ':') > 0 GROUP BY 1
      """)
    try count.bind([":namespace": queue.namespace]).forEachRow(of: CountColumn.self) { row in
      guard let user = UInt32(row.text(.user)) else { return }
      known.add(KnownIDs.bytes(row.int(.ids), keys: row.int(.bytes)), of: RowOwner(userID: user))
    }
    return known
  }
}
