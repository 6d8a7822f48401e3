import PrismBase
import PrismProtocol
import PrismSQLite

/// Carries out what becomes of a packet in flight (docs/delivery.md, "Delivery decision").
struct Settlement: StoreOperations {
  let transaction: StoreTransaction
  init(_ transaction: StoreTransaction) { self.transaction = transaction }

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
    }
  }

  func delete(_ id: PacketID) throws(SQLiteError) {
    try transaction.statement(.packets(.delete)).run([":id": id.bytes])
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
      try transaction.statement(.clientIDs(.deliver)).run([
        ":time": transaction.heldTime, ":namespace": packet.queue.namespace, ":key": key,
      ])
    }
  }

  private func release(_ id: PacketID) throws(SQLiteError) {
    guard let packet = try remove(id) else { return }
    state[packet.queue].ledger.move(packet.members.count, from: .claimed, to: .waiting)
    if packet.members.isOfRing { return try transaction.letGo(packet.members, packet.queue, by: packet.rule ?? "") }
    transaction.release(packet.members, packet.queue)
  }

  /// Both halves take the place of the whole. A packet of one row stays as it is.
  private func split(_ id: PacketID, _ first: PacketID, _ second: PacketID) throws(SQLiteError) {
    guard let (queue, place) = state.find(id), state[queue].packets[place].members.count > 1 else { return }
    let whole = state[queue].packets[place]
    try delete(id)
    try transaction.statement(.packets(.shift)).run([
      ":namespace": queue.namespace, ":kind": queue.kind.number, ":position": whole.position,
    ])
    for later in (place + 1)..<state[queue].packets.count { state[queue].packets[later].position += 1 }
    let (lower, upper) = whole.members.halves()
    var halves: [PacketRecord] = []
    for (offset, (id, members)) in [(first, lower), (second, upper)].enumerated() {
      var half = whole
      (half.id, half.members, half.position) = (id, members, whole.position + offset)
      half.bytes = try transaction.bytes(of: members, queue)
      try transaction.statement(.packets(.insert)).run(inserting: half)
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
