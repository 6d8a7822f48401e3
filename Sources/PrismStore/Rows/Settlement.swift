import PrismBase
import PrismProtocol
import PrismSQLite

/// Carries out what becomes of a packet in flight (docs/delivery.md, "Delivery decision").
struct Settlement: PlainOperations {
  let transaction: StoreTransaction

  /// Everything that one commit does for uploads: dispositions in their order, then notes, then claims.
  func carryOut(_ commit: UploadCommit) throws(SQLiteError) -> [ClaimedPacket?] {
    for disposition in commit.dispositions { try settle(disposition) }
    for note in commit.notes { try transaction.write(note) }
    var packets: [ClaimedPacket?] = []
    for claim in commit.claims {
      packets.append(
        try claim.kind.isReport ? Claims(transaction).take(claim) : RecordPackets(transaction).take(claim))
    }
    return packets
  }

  private func settle(_ disposition: Disposition) throws(SQLiteError) {
    if try RecordPackets(transaction).settle(disposition) { return }
    switch disposition {
    case .delivered(let id, let receipt): try deliver(id, receipt)
    case .split(let id, let first, let second): try split(id, first, second)
    case .dead(let id, let cause): try deadLetter(id, cause)
    case .released(let id): try release(id)
    case .setBack(let id): try setBack(id)
    }
  }

  func delete(_ id: PacketID) throws(SQLiteError) {
    try transaction.statement(PacketStatement.delete).run([":id": id.bytes])
  }

  /// Removes the packet from those in flight, in memory and in its table. nil if it is settled already, and stays so.
  private func remove(_ id: PacketID) throws(SQLiteError) -> PacketRecord? {
    guard let (queue, place) = state.find(id) else {
      transaction.memory.log.warning("a packet was settled that is not in flight", ["packet": id.description])
      return nil
    }
    try delete(id)
    transaction.touch(queue)
    return state[queue].packets.remove(at: place)
  }

  private func deliver(_ id: PacketID, _ receipt: Disposition.Receipt) throws(SQLiteError) {
    guard let packet = try remove(id) else { return }
    if packet.hasClientIDs { try noteDelivered(packet) }
    try ShareCount(transaction).discount(packet.members, packet.queue)
    let stays = try Segments(transaction).spend(packet)
    if !stays { try transaction.deleteRows(packet.members, packet.queue) }
    let bytes = packet.members.isOfRing ? 0 : packet.bytes
    state[packet.queue].remove(packet.members.count, bytes: bytes, from: .claimed, to: .delivered)
    state[packet.queue].lastAccepted = id
    let record = DeliveryRecord(
      id: id, queue: packet.queue, receipt: receipt, members: packet.members, heldTime: transaction.heldTime)
    // A damaged database's pages may be older than this delivery: what is brought over asks for it. So does it for rows
    // that stay in their table, if the ledger can't be read.
    try Deliveries(transaction).add(record, isWrittenAtOnce: stays || !state.salvage.files.isEmpty)
    try Segments(transaction).release(packet.queue, after: packet.members)
  }

  private func noteDelivered(_ packet: PacketRecord) throws(SQLiteError) {
    for (_, key) in try transaction.clientIDs(of: packet.members, packet.queue) {
      let owner = ClientIDKey.userID(key).map { RowOwner(userID: $0) } ?? .unknown
      try Array(key.utf8).withUnsafeBufferPointer { (key) throws(SQLiteError) in
        try ClientIDBound(transaction).deliver(UnsafeRawBufferPointer(key), of: owner, packet.queue)
      }
    }
  }

  private func release(_ id: PacketID) throws(SQLiteError) {
    guard let packet = try remove(id) else { return }
    state[packet.queue].ledger.move(packet.members.count, from: .claimed, to: .waiting)
    if packet.members.isOfRing { return try transaction.letGo(packet.members, packet.queue, by: packet.rule ?? "") }
    transaction.release(packet.members, packet.queue)
  }

  private func setBack(_ id: PacketID) throws(SQLiteError) {
    guard let (queue, place) = state.find(id) else { return try release(id) }
    let members = state[queue].packets[place].members
    try release(id)
    if !members.isOfRing { state[queue].setBack(members) }
  }

  /// Both halves take the place of the whole. A packet of one row stays as it is.
  private func split(_ id: PacketID, _ first: PacketID, _ second: PacketID) throws(SQLiteError) {
    guard let (queue, place) = state.find(id), state[queue].packets[place].members.count > 1 else { return }
    let whole = state[queue].packets[place]
    try delete(id)
    try transaction.statement(PacketStatement.shift).run([
      ":namespace": queue.namespace, ":kind": queue.kind.number, ":position": whole.position,
    ])
    for later in (place + 1)..<state[queue].packets.count { state[queue].packets[later].position += 1 }
    let (lower, upper) = whole.members.halves()
    var halves: [PacketRecord] = []
    for (offset, (id, members)) in [(first, lower), (second, upper)].enumerated() {
      var half = whole
      (half.id, half.members, half.position) = (id, members, whole.position + offset)
      half.bytes = try transaction.bytes(of: members, queue)
      try transaction.statement(PacketStatement.insert).run(inserting: half)
      halves.append(half)
    }
    state[queue].packets.replaceSubrange(place...place, with: halves)
  }

  private func deadLetter(_ id: PacketID, _ cause: Disposition.DeadCause) throws(SQLiteError) {
    guard let packet = try remove(id) else { return }
    try DeadLetters(transaction).add(packet, cause)
    try transaction.deleteRows(packet.members, packet.queue)
    state[packet.queue].ledger.move(packet.members.count, from: .claimed, to: .dead)
    if packet.members.isOfRing { state[packet.queue].bytes += packet.bytes }
    ShareCount(transaction).forgetIncomplete(packet.queue)
  }
}

/// Which packets were delivered within the last 24 h.
struct Deliveries: PlainOperations {
  static let keptMilliseconds: Int64 = 86_400_000

  let transaction: StoreTransaction

  func add(_ record: DeliveryRecord, isWrittenAtOnce: Bool) throws(SQLiteError) {
    transaction.memory.deliveries.records.append(record)
    let count = transaction.memory.deliveries.records.count
    if isWrittenAtOnce || count >= UnwrittenDeliveries.countMax { try write() }
  }

  func write() throws(SQLiteError) {
    let insert = try transaction.statement(PacketStatement.insertDelivery)
    for record in transaction.memory.deliveries.records { try insert.run(inserting: record) }
    transaction.memory.deliveries.records = []
  }

  /// Forgets the old ones among the next thousand. All are looked at once an hour: an index would cost each packet a page.
  /// - Parameter now: by the held clock.
  func forget(now: Int64) throws(SQLiteError) {
    guard let after = transaction.memory.deliveries.placeOfWalk(now) else { return }
    var (old, last, count): ([[UInt8]], [UInt8], Int) = ([], [], 0)
    let find = try transaction.statement(PacketStatement.deliveriesAfter).bind([":after": after])
    try find.forEachRow(of: DeliveryRecord.Column.self) { row in
      (last, count) = (row.bytes(.id), count + 1)
      if let record = DeliveryRecord(row), record.heldTime >= now - Self.keptMilliseconds || isNeeded(record) { return }
      old.append(last)
    }
    transaction.memory.deliveries.walked(to: count < 1000 ? nil : last, now)
    for id in old {
      try transaction.statement(PacketStatement.deleteDelivery).run([":id": id])
    }
  }

  /// While its rows are in their table, a delivery is known twice, on two pages.
  private func isNeeded(_ record: DeliveryRecord) -> Bool {
    guard transaction.names.namespaces[record.queue.namespace] != nil else { return false }
    return transaction.state[record.queue].segments.list.contains { $0.spent.overlaps(record.members) }
  }
}

extension DatabaseFile {
  /// Writes the deliveries that are not written yet, and the held time with them.
  func writeDeliveries() throws(StoreError) {
    guard !memory.deliveries.records.isEmpty || memory.held.differs(options.time.uptime) else { return }
    try write { (transaction) throws(SQLiteError) in
      try Deliveries(transaction).write()
      try transaction.writeHeldTime()
    }
  }
}
