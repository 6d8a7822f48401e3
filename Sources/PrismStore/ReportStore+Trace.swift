import PrismBase
import PrismProtocol

/// Where one row of a report is, or went.
public struct TracedRow: Sendable, Equatable {
  public enum Place: Sendable, Equatable {
    case waiting
    case inFlight(PacketID, claimedTime: Int64)
    case dead(number: Int, PacketID, Settlement.DeadCause)
    /// Within the last 24 h.
    case delivered(PacketID, Settlement.Receipt)
  }

  public var namespace: NamespaceName
  public var kind: ReportKind
  /// Who reported it; nil: not known (any more).
  public var userID: UInt32?
  public var place: Place
  /// Milliseconds since 1970; nil once it was delivered: the row is gone.
  public var createdTime: Int64?
}

// A report's journey (`prismctl trace`).
extension ReportStore {
  /// Every row of this report id that is held, or was delivered within 24 h; in the order of namespaces and kinds.
  public func trace(_ reportID: String) throws(StoreError) -> [TracedRow] {
    try writeSettled()
    return try reading { (database) throws(SQLiteError) in
      var result: [TracedRow] = []
      for (number, row, holder) in try rows(of: reportID, database) {
        for kind in ReportKind.allCases {
          let queue = QueueID(namespace: number, kind: kind)
          guard let namespace = state.namespaces[number],
            let place = try place(of: row, queue, database)
          else { continue }
          let (created, owner) = try origin(of: row, queue, database)
          result.append(
            TracedRow(
              namespace: namespace, kind: kind, userID: holder ?? owner?.userID, place: place, createdTime: created))
        }
      }
      return result
    }
  }

  /// A daemon-made id names its row, in whichever namespace; a client's is looked up in each, and is every user's row of
  /// this id. `userID` is nil where only the row itself says whose it is.
  func rows(
    of reportID: String, _ database: StoreDatabase
  ) throws(SQLiteError) -> [(namespace: Int, row: Int64, userID: UInt32?)] {
    if let row = RowID(reportID: reportID, epoch: epoch) {
      return state.namespaces.keys.sorted().map { ($0, row.value, nil) }
    }
    var result: [(namespace: Int, row: Int64, userID: UInt32?)] = []
    for namespace in state.namespaces.keys.sorted() {
      for holder in try holders(of: reportID, namespace, database) {
        result.append((namespace, holder.row, ClientIDKey.userID(holder.key)))
      }
    }
    return result
  }

  private func origin(
    of row: Int64, _ queue: QueueID, _ database: StoreDatabase
  ) throws(SQLiteError) -> (createdTime: Int64?, owner: RowOwner?) {
    let select = try database.connection.prepare(
      """
      SELECT created_time, context FROM \(queue.table) WHERE id = ?1 UNION ALL SELECT created_time, ~user FROM dead
      WHERE namespace = \(queue.namespace) AND kind = \(QueueID.number(of: queue.kind)) AND row = ?1
      """)
    select.bind(1, row)
    guard try select.step() else { return (nil, nil) }
    return (select.int64(0), try owner(select.int64(1), namespace: queue.namespace, database))
  }

  private func place(
    of row: Int64, _ queue: QueueID, _ database: StoreDatabase
  ) throws(SQLiteError) -> TracedRow.Place? {
    if let packet = state[queue].packets.first(where: { $0.members.run(of: row) != nil }) {
      return .inFlight(packet.id, claimedTime: packet.createdTime)
    }
    let exists = try database.statement(.rowExists(queue))
    exists.bind(1, row)
    defer { exists.reset() }
    if try exists.step() { return .waiting }
    if let dead = try dead(row, queue, database) { return dead }
    return try delivered(row, queue, database)
  }

  func dead(_ row: Int64, _ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) -> TracedRow.Place? {
    let select = try database.connection.prepare(
      """
      SELECT number, packet, status, message, dead_time, attempts FROM dead
      WHERE namespace = \(queue.namespace) AND kind = \(QueueID.number(of: queue.kind)) AND row = ?
      """)
    select.bind(1, row)
    guard try select.step(), let packet = PacketID(bytes: select.bytes(1)) else { return nil }
    let cause = Settlement.DeadCause(
      status: select.int(2), message: select.text(3), unixMilliseconds: select.int64(4), attempts: select.int(5))
    return .dead(number: select.int(0), packet, cause)
  }

  private func delivered(
    _ row: Int64, _ queue: QueueID, _ database: StoreDatabase
  ) throws(SQLiteError) -> TracedRow.Place? {
    let select = try database.connection.prepare(
      """
      SELECT id, settled_time, attempts, was_duplicate, members FROM settled
      WHERE namespace = \(queue.namespace) AND kind = \(QueueID.number(of: queue.kind))
      """)
    var place: TracedRow.Place?
    try select.forEachRow { settled in
      guard place == nil, IDRuns(text: settled.text(4))?.run(of: row) != nil,
        let packet = PacketID(bytes: settled.bytes(0))
      else { return }
      let receipt = Settlement.Receipt(
        unixMilliseconds: settled.int64(1), attempts: settled.int(2), wasDuplicate: settled.int(3) != 0)
      place = .delivered(packet, receipt)
    }
    return place
  }
}
