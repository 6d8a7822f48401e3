import PrismBase
import PrismProtocol

// What becomes of a packet once it was answered (docs/delivery.md, "Settling"), and of rows that leave otherwise.
extension ReportStore {
  func settle(_ settlement: Settlement, _ database: StoreDatabase) throws(SQLiteError) {
    switch settlement {
    case .delivered(let id, let receipt): try deliver(id, receipt, database)
    case .split(let id, let first, let second): try split(id, first, second, database)
    case .dead(let id, let cause): try bury(id, cause, database)
    case .dissolved(let id): try dissolve(id, database)
    }
  }

  /// The packet leaves the ones in flight, in memory and in its table. nil: it is settled already, and stays so.
  private func remove(_ id: PacketID, _ database: StoreDatabase) throws(SQLiteError) -> (QueueID, PacketState)? {
    guard let (queue, position) = state.find(id) else {
      options.log.warning("a packet was settled that is not in flight", ["packet": id.description])
      return nil
    }
    try deletePacket(id, database)
    touched.insert(queue)
    return (queue, state[queue].packets.remove(at: position))
  }

  private func deliver(
    _ id: PacketID, _ receipt: Settlement.Receipt, _ database: StoreDatabase
  ) throws(SQLiteError) {
    guard let (queue, packet) = try remove(id, database) else { return }
    if packet.hasClientIDs {
      for id in try clientIDs(of: packet.members, queue, database) {
        let deliver = try database.statement(.deliverClientID)
        deliver.bind(1, receipt.unixMilliseconds)
        deliver.bind(2, queue.namespace)
        deliver.bind(3, id.key)
        try deliver.run()
      }
    }
    try discount(packet.members, queue, database)
    try deleteRows(packet.members, queue, database)
    state[queue].remove(packet.members.count, bytes: packet.bytes, from: .claimed, to: .delivered)
    state[queue].lastAccepted = id
    unwrittenSettled.append(SettledPacket(id: id, queue: queue, receipt: receipt, members: packet.members))
    if unwrittenSettled.count >= SettledPacket.unwrittenMax || !salvage.files.isEmpty { try writeSettled(database) }
  }

  private func dissolve(_ id: PacketID, _ database: StoreDatabase) throws(SQLiteError) {
    guard let (queue, packet) = try remove(id, database) else { return }
    state[queue].ledger.move(packet.members.count, from: .claimed, to: .waiting)
    release(packet.members, queue)
  }

  /// Both halves stand where the whole stood; a packet of one row stays as it is.
  private func split(
    _ id: PacketID, _ first: PacketID, _ second: PacketID, _ database: StoreDatabase
  ) throws(SQLiteError) {
    guard let (queue, index) = state.find(id), state[queue].packets[index].members.count > 1 else { return }
    let whole = state[queue].packets[index]
    try deletePacket(id, database)
    let shift = try database.statement(.shiftPackets)
    shift.bind(1, queue.namespace)
    shift.bind(2, QueueID.number(of: queue.kind))
    shift.bind(3, whole.position)
    try shift.run()
    for later in (index + 1)..<state[queue].packets.count { state[queue].packets[later].position += 1 }
    let (lower, upper) = whole.members.halves()
    var halves: [PacketState] = []
    for (offset, (id, members)) in [(first, lower), (second, upper)].enumerated() {
      var half = whole
      (half.id, half.members, half.position) = (id, members, whole.position + offset)
      half.bytes = try bytes(of: members, queue, database)
      try insert(half, queue, database)
      halves.append(half)
    }
    state[queue].packets.replaceSubrange(index...index, with: halves)
  }

  /// Dead letters hold everything that they need to be read: the context is part of the body.
  private func bury(
    _ id: PacketID, _ cause: Settlement.DeadCause, _ database: StoreDatabase
  ) throws(SQLiteError) {
    guard let (queue, packet) = try remove(id, database) else { return }
    let rows = try letters(packet.members, queue, database)
    let bury = try database.statement(.bury(queue))
    for row in rows {
      bury.bind(1, row.id)
      bury.bind(2, row.reportID)
      bury.bind(3, id.bytes)
      bury.bind(4, cause.status)
      bury.bind(5, cause.message)
      bury.bind(6, cause.unixMilliseconds)
      bury.bind(7, cause.attempts)
      bury.bind(8, row.body)
      bury.bind(9, row.sum)
      bury.bind(10, row.owner.number)
      try bury.run()
    }
    try deleteRows(packet.members, queue, database)
    state[queue].ledger.move(packet.members.count, from: .claimed, to: .dead)
    forgetIncompleteShares(queue)
  }

  private func letters(
    _ members: IDRuns, _ queue: QueueID, _ database: StoreDatabase
  ) throws(SQLiteError) -> [(id: Int64, reportID: String, body: [UInt8], owner: RowOwner, sum: Int64)] {
    var result: [(id: Int64, reportID: String, body: [UInt8], owner: RowOwner, sum: Int64)] = []
    let read = try database.statement(.readRange(queue))
    for run in members.runs {
      read.bind(1, run.first)
      read.bind(2, run.last)
      try read.forEachRow { (statement) throws(SQLiteError) in
        let row = StoredRow(statement, hasPayload: queue.kind == .payload)
        var body = try rendering(of: row, queue, database)?.context ?? []
        if !body.isEmpty && !row.body.isEmpty { body.append(0x2C) }
        body.append(contentsOf: row.body)
        let given = row.reportID.map { String(decoding: $0, as: UTF8.self) }
        let reportID = given ?? RowID(value: row.id).reportID(epoch: epoch)
        let owner = try owner(row.context, namespace: queue.namespace, database) ?? .unknown
        let sum = DeadLetterRecord.sum(
          row: row.id, type: row.type, createdTime: row.createdTime, flags: row.flags.rawValue, size: row.size,
          reportID: Array(reportID.utf8), body: body, payload: row.payload.map { [UInt8]($0) }, owner: owner)
        result.append((row.id, reportID, body, owner, sum))
      }
    }
    return result
  }

  // MARK: Rows that leave without a packet

  /// Rows that wait leave the store: expired, evicted, cleared, removed. Their clients' ids are free again.
  func drop(
    _ members: IDRuns, bytes: Int, _ queue: QueueID, to account: Ledger.Account, _ database: StoreDatabase
  ) throws(SQLiteError) {
    guard !members.isEmpty else { return }
    try freeClientIDs(of: members, queue, database)
    try discount(members, queue, database)
    try deleteRows(members, queue, database)
    state[queue].remove(members.count, bytes: bytes, from: .waiting, to: account)
    touched.insert(queue)
  }

  /// Rows that are not what was stored are never sent: they are kept in `damaged`, and counted.
  func layAside(
    _ members: IDRuns, _ queue: QueueID, from account: Ledger.Account, _ database: StoreDatabase
  ) throws(SQLiteError) {
    let bytes = try bytes(of: members, queue, database)
    let layAside = try database.statement(.layAside(queue))
    for id in members.ids {
      layAside.bind(1, id)
      layAside.bind(2, options.time.unixMilliseconds)
      try layAside.run()
    }
    try freeClientIDs(of: members, queue, database)
    try deleteRows(members, queue, database)
    state[queue].remove(members.count, bytes: bytes, from: account, to: .corrupt)
    state.shares[queue.namespace] = nil  // whose they were can't be told
    touched.insert(queue)
    options.log.error(
      "stored reports were damaged: they are laid aside and not sent",
      [
        "namespace": state.namespaces[queue.namespace]?.text ?? "", "kind": queue.kind.rawValue,
        "rows": String(members.count),
      ])
  }

  private func deleteRows(_ members: IDRuns, _ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) {
    let delete = try database.statement(.deleteRange(queue))
    for run in members.runs {
      delete.bind(1, run.first)
      delete.bind(2, run.last)
      try delete.run()
    }
  }

  private func clientIDs(
    of members: IDRuns, _ queue: QueueID, _ database: StoreDatabase
  ) throws(SQLiteError) -> [(row: Int64, key: String)] {
    var result: [(row: Int64, key: String)] = []
    let find = try database.statement(.clientIDsInRange(queue))
    for run in members.runs {
      find.bind(1, run.first)
      find.bind(2, run.last)
      try find.forEachRow { (row) throws(SQLiteError) in
        let (id, reportID) = (row.int64(0), row.text(1))
        if let owner = try owner(row.int64(2), namespace: queue.namespace, database) {
          result.append((id, ClientIDKey.text(reportID, owner)))
        } else {  // its context is damaged
          let holders = try holders(of: reportID, queue.namespace, database)
          result += holders.filter { $0.row == id }.map { (id, $0.key) }
        }
      }
    }
    return result
  }

  /// Every user's row of this id.
  func holders(
    of reportID: String, _ namespace: Int, _ database: StoreDatabase
  ) throws(SQLiteError) -> [(key: String, row: Int64)] {
    var result: [(key: String, row: Int64)] = []
    let find = try database.statement(.holdersOfClientID)
    find.bind(1, namespace)
    find.bind(2, reportID)
    try find.forEachRow { result.append(($0.text(0), $0.int64(1))) }
    return result
  }

  private func freeClientIDs(of members: IDRuns, _ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) {
    for (row, key) in try clientIDs(of: members, queue, database) {
      try freeClientID(key, of: row, queue, database)
    }
  }

  /// The id may be given to another report, unless the row's twin (its payload, or the meta of one) is still held: the
  /// report would come twice.
  func freeClientID(
    _ key: String, of row: Int64, _ queue: QueueID, _ database: StoreDatabase
  ) throws(SQLiteError) {
    let twin = try database.statement(.rowExists(queue.twin))
    twin.bind(1, row)
    defer { twin.reset() }
    if try twin.step() { return }
    if state[queue.twin].ledger[.dead] > 0, try dead(row, queue.twin, database) != nil { return }
    let delete = try database.statement(.deleteClientID)
    delete.bind(1, queue.namespace)
    delete.bind(2, key)
    delete.bind(3, row)
    try delete.run()
  }
}
