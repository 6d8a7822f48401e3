import PrismProtocol

// Taking rows into packets, and reading packets again.
extension ReportStore {
  /// One commit for everything in `turn`: settlements in their order, then notes, then claims. nil where nothing waits for
  /// a claim, or where older rows are still to be brought over from a database that was set aside. - Throws: `diskFull`, `uncertain`, `unavailable`; then nothing of it was done (or nobody can tell).
  public func turn(_ turn: UploadTurn) throws(StoreError) -> [ClaimedPacket?] {
    uses += 1
    do {
      return try transaction { (database) throws(SQLiteError) in
        for settlement in turn.settlements { try settle(settlement, database) }
        for note in turn.notes { try write(note, database) }
        var packets: [ClaimedPacket?] = []
        for claim in turn.claims { packets.append(try take(claim, database)) }
        return packets
      }
    } catch {
      throw error.storeError
    }
  }

  /// The rows of a packet in flight once more: the same plaintext, but for rows that were damaged meanwhile.
  /// nil: there is no such packet, or none of its rows is whole (then it is gone).
  public func read(_ id: PacketID) throws(StoreError) -> ClaimedPacket? {
    guard let (queue, position) = state.find(id) else { return nil }
    let packet = state[queue].packets[position]
    let reading = try reading { (database) throws(SQLiteError) in try read(packet.members, of: queue, database) }
    guard reading.builder.members.count < packet.members.count else { return claimed(packet, queue, reading.builder) }
    do {
      try transaction { (database) throws(SQLiteError) in
        try layAside(packet.members.subtracting(Set(reading.builder.members.ids)), queue, from: .claimed, database)
        try replace(packet, queue, members: reading.builder.members, database)
      }
    } catch {
      throw error.storeError
    }
    return reading.builder.members.isEmpty ? nil : claimed(packet, queue, reading.builder)
  }

  /// Packets whose rows are claimed, in the order of sending: what is to be sent first after a start.
  public func inFlight(_ namespace: NamespaceName, _ kind: ReportKind) throws(StoreError) -> [PacketInFlight] {
    guard let queue = state.queue(namespace, kind) else { return [] }
    return state[queue].packets.map {
      PacketInFlight(id: $0.id, createdTime: $0.createdTime, itemCount: $0.members.count)
    }
  }

  /// Whether a claim may find something. Touches no disk.
  public func hasWaiting(_ namespace: NamespaceName, _ kind: ReportKind) -> Bool {
    state.queue(namespace, kind).map { state[$0].ledger[.waiting] > 0 } ?? false
  }

  /// The last packet of this namespace and kind that was accepted; nil before the first.
  public func lastAccepted(_ namespace: NamespaceName, _ kind: ReportKind) throws(StoreError) -> PacketID? {
    state.queue(namespace, kind).flatMap { state[$0].lastAccepted }
  }

  private func take(_ claim: Claim, _ database: StoreDatabase) throws(SQLiteError) -> ClaimedPacket? {
    guard let queue = state.queue(claim.namespace, claim.kind), state[queue].ledger[.waiting] > 0, !isAwaited(queue)
    else { return nil }
    let itemsMax = claim.kind == .payload ? min(claim.itemsMax, Limits.packetPayloadCountMax) : claim.itemsMax
    let expected = state[queue].metaBytesExpected(
      of: min(itemsMax, state[queue].ledger[.waiting]), kind: claim.kind)
    var reading = Reading(
      builder: PacketBuilder(
        itemsMax: itemsMax, bytesMax: claim.bytesMax, metaBytesMax: claim.metaBytesMax, metaBytesExpected: expected))
    let types = TypeChoice(claim.types, state)
    var after = state[queue].cursor(for: claim.types)
    for lane in Lane.allCases {
      let isClosed = try walk(lane, queue, types, after: &after[lane], into: &reading, database)
      if isClosed { break }
    }
    state[queue].setCursor(after, for: claim.types)
    if !reading.damaged.isEmpty { try layAside(reading.damaged, queue, from: .waiting, database) }
    guard !reading.builder.members.isEmpty else {
      if claim.types == .all { try expectNone(queue, database) }
      return nil
    }
    return try record(claim, queue, reading.builder, database)
  }

  /// Takes the waiting rows of one lane in their order. true: the packet is closed.
  private func walk(
    _ lane: Lane, _ queue: QueueID, _ types: TypeChoice, after: inout Int64, into reading: inout Reading,
    _ database: StoreDatabase
  ) throws(SQLiteError) -> Bool {
    let rows = try database.statement(.walkRows(queue))
    defer { rows.reset() }
    let before = state[queue]  // looked up for every row, it would be copied for every row
    var isBound = false
    while !reading.builder.isFull {
      if !isBound {
        rows.reset()
        rows.bind(1, after)
        rows.bind(2, lane.idEnd)
        isBound = true
      }
      guard try rows.step() else { return false }
      let row = StoredRow(rows, hasPayload: queue.kind == .payload)
      // A damaged tree may lead back, for ever.
      guard row.id > after else { throw .nonsense }
      if let run = before.claimedRun(of: row.id) {
        (after, isBound) = (run.last, false)
      } else if !types.contains(row.type) {
        after = row.id
      } else {
        guard try take(row, rows, queue, into: &reading, database) else { return true }
        after = row.id
      }
    }
    return true
  }

  /// Rows wait that can't be found: a damaged tree leads to fewer than there are.
  private func expectNone(_ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) {
    let expected = state[queue].ledger[.waiting] + state[queue].ledger[.claimed]
    guard state[queue].ledger[.waiting] > 0, salvage.files.isEmpty else { return }
    let count = try database.connection.firstInt("SELECT count(*) FROM \(queue.table)")
    if count != Int64(expected) { throw .nonsense }
  }

  private func record(
    _ claim: Claim, _ queue: QueueID, _ builder: PacketBuilder, _ database: StoreDatabase
  ) throws(SQLiteError) -> ClaimedPacket {
    // The packet's record says it all: the ledger's line, a page of its own, is written when it is settled.
    state[queue].ledger.move(builder.members.count, from: .waiting, to: .claimed)
    let packet = PacketState(
      id: claim.packetID, position: (state[queue].packets.last?.position ?? 0) + 1, createdTime: claim.unixMilliseconds,
      bytes: builder.bytes, hasClientIDs: builder.hasClientIDs, header: state[queue].ledger.header(epoch: epoch),
      members: builder.members)
    try insert(packet, queue, database)
    state[queue].packets.append(packet)
    return claimed(packet, queue, builder)
  }

  func insert(_ packet: PacketState, _ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) {
    let insert = try database.statement(.insertPacket)
    insert.bind(1, packet.id.bytes)
    insert.bind(2, queue.namespace)
    insert.bind(3, QueueID.number(of: queue.kind))
    insert.bind(4, packet.position)
    insert.bind(5, packet.createdTime)
    insert.bind(6, packet.bytes)
    insert.bind(7, packet.hasClientIDs ? 1 : 0)
    insert.bind(8, packet.header)
    insert.bind(9, packet.members.text)
    insert.bind(10, packet.sum(in: queue))
    try insert.run()
  }

  private func claimed(_ packet: PacketState, _ queue: QueueID, _ builder: PacketBuilder) -> ClaimedPacket {
    ClaimedPacket(
      id: packet.id, namespace: state.namespaces[queue.namespace] ?? .prism, kind: queue.kind,
      createdTime: packet.createdTime, ledgerHeader: packet.header, metas: builder.metas,
      itemCount: builder.members.count, payloads: builder.payloads)
  }

  /// A packet in flight lost damaged rows; without any row left it is gone.
  private func replace(
    _ packet: PacketState, _ queue: QueueID, members: IDRuns, _ database: StoreDatabase
  ) throws(SQLiteError) {
    guard let position = state[queue].packets.firstIndex(where: { $0.id == packet.id }) else { return }
    guard !members.isEmpty else {
      state[queue].packets.remove(at: position)
      return try deletePacket(packet.id, database)
    }
    let bytes = try self.bytes(of: members, queue, database)
    state[queue].packets[position].members = members
    state[queue].packets[position].bytes = bytes
    let update = try database.statement(.updatePacket)
    update.bind(1, bytes)
    update.bind(2, members.text)
    update.bind(3, state[queue].packets[position].sum(in: queue))
    update.bind(4, packet.id.bytes)
    try update.run()
  }

  func deletePacket(_ id: PacketID, _ database: StoreDatabase) throws(SQLiteError) {
    let delete = try database.statement(.deletePacket)
    delete.bind(1, id.bytes)
    try delete.run()
  }

  /// Sum of `size`.
  func bytes(of members: IDRuns, _ queue: QueueID, _ database: StoreDatabase) throws(SQLiteError) -> Int {
    let size = try database.statement(.sizeOfRange(queue))
    var sum = 0
    for run in members.runs {
      size.bind(1, run.first)
      size.bind(2, run.last)
      try size.forEachRow { sum += $0.int(0) }
    }
    return sum
  }
}
