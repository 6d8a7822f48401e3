import PrismProtocol
import PrismSQLite

/// Finds where a report is, or went (`prismctl trace`).
struct Trace: PlainOperations {
  let transaction: StoreTransaction

  /// Every row of this report id that is held, was delivered within 24 h, or left otherwise in this run; in the order of
  /// namespaces and kinds.
  func rows(of reportID: String) throws(SQLiteError) -> [TracedRow] {
    var result: [TracedRow] = []
    for found in try candidates(reportID) + dropped(reportID) {
      for queue in QueueID.all(of: found.namespace) {
        let queue = try MemoryRing(transaction).home(of: found.row, queue)
        guard let namespace = state.names.namespaces[found.namespace], let place = try place(of: found.row, queue)
        else { continue }
        let origin = try origin(of: found.row, queue)
        result.append(
          TracedRow(
            namespace: namespace, type: origin?.type, countedOn: origin?.reportID.flatMap { $0 == reportID ? nil : $0 },
            kind: queue.kind, userID: found.userID ?? origin?.owner?.userID, place: place,
            createdTime: origin?.createdTime))
      }
    }
    return result
  }

  /// Where a row of a report id may be. `userID` is nil if only the row itself says its owner.
  typealias Candidate = (namespace: Int, row: Int64, userID: UInt32?)

  /// An id that the daemon made names its row, in any namespace. A client's id is looked up in each namespace, and is the
  /// row of each user that gave it.
  func candidates(_ reportID: String) throws(SQLiteError) -> [Candidate] {
    let namespaces = state.names.namespaces.keys.sorted()
    if let row = RowID(reportID: reportID, epoch: transaction.memory.epoch.text) {
      return namespaces.map { ($0, row.value, nil) }
    }
    var result: [Candidate] = []
    for namespace in namespaces {
      for holder in try transaction.holders(of: reportID, namespace) {
        result.append((namespace, holder.row, ClientIDKey.userID(holder.key)))
      }
      for (row, userID) in try KnownRuns(transaction).rows(of: reportID, namespace) {
        result.append((namespace, row, userID))
      }
    }
    return result
  }

  /// Rows of clients' ids that are free again.
  private func dropped(_ reportID: String) -> [Candidate] {
    state.names.namespaces.keys.sorted().flatMap { namespace in
      transaction.memory.policies.departures.rows(of: reportID, namespace).map { (namespace, $0.row, $0.userID) }
    }
  }

  private enum OriginColumn: String, SQLiteColumn { case createdTime, context, type, reportID }

  /// Of a row that is held. `reportID` is nil for an id of the daemon's.
  private typealias Origin = (createdTime: Int64, owner: RowOwner?, type: ReportType?, reportID: String?)

  private func origin(of row: Int64, _ queue: QueueID) throws(SQLiteError) -> Origin? {
    let segments = state[queue].segments
    let isHeld = segments.spentRun(of: row) == nil
    let select = try transaction.prepare(
      """
      SELECT \(OriginColumn.list) FROM \(segments.table(of: row, queue).name) WHERE id = :row AND \(isHeld) UNION ALL
      SELECT created_time, ~user, type, report_id FROM dead
      WHERE namespace = \(queue.namespace) AND kind = \(queue.kind.number) AND row = :row
      """)
    select.bind(":row", row)
    let found = try select.first(of: OriginColumn.self) {
      ($0.int64(.createdTime), $0.int64(.context), $0.int64(.type), $0.string(.reportID))
    }
    guard let (created, context, type, reportID) = found else { return nil }
    let owner = try transaction.owner(context, namespace: queue.namespace)
    return (created, owner, state.names.types[type], reportID)
  }

  private func place(of row: Int64, _ queue: QueueID) throws(SQLiteError) -> TracedRow.Place? {
    if let packet = state[queue].packets.first(where: { $0.members.run(of: row) != nil }) {
      return .inFlight(packet.id, claimedTime: packet.createdTime)
    }
    if try transaction.exists(row, queue) {
      return RowID.isKept(row) && !state[queue].isReleased(row) ? .kept : .waiting
    }
    if let dead = try DeadLetters(transaction).place(of: row, queue) { return dead }
    let departures = transaction.memory.policies.departures
    return try delivered(row, queue) ?? departures.place(of: row, queue) ?? departures.place(of: row, queue.inMemory)
  }

  private func delivered(_ row: Int64, _ queue: QueueID) throws(SQLiteError) -> TracedRow.Place? {
    let select = try transaction.prepare(
      """
      SELECT \(DeliveryRecord.Column.list) FROM settled
      WHERE namespace = \(queue.namespace) AND kind = \(queue.kind.number)
      """)
    var place: TracedRow.Place?
    try select.forEachRow(of: DeliveryRecord.Column.self) { settled in
      guard place == nil, let delivery = DeliveryRecord(settled), delivery.members.run(of: row) != nil else { return }
      place = .delivered(delivery.id, delivery.receipt)
    }
    return place
  }
}
