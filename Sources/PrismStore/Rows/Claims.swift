import PrismBase
import PrismProtocol
import PrismSQLite

/// Takes waiting rows into packets, and reads packets again.
struct Claims: PlainOperations {
  let transaction: StoreTransaction

  // MARK: Claiming

  /// - Returns: nil if nothing waits for the claim, or if older rows are still to come from a damaged database.
  func take(_ claim: Claim) throws(SQLiteError) -> ClaimedPacket? {
    guard let queue = state.queue(claim.namespace, claim.kind), state[queue].claimable > 0,
      !state.salvage.isAwaited(queue)
    else { return nil }
    let clock = transaction.memory.clock.read()
    let types = TypeChoice(claim.types, state.names)
    if let packet = try takeReleased(claim, queue, types, clock) { return packet }
    var reading = RowReading(builder(for: claim, queue), queue, transaction)
    var after = state[queue].cursor(for: claim.types)
    // A crash gets precedence: priorities are in the order of their importance.
    for priority in Priority.leaving {
      let isClosed = try walk(priority, queue, types, after: &after[priority], into: &reading)
      if isClosed { break }
    }
    state[queue].setCursor(after, for: claim.types)
    if !reading.damaged.isEmpty { try transaction.quarantine(reading.damaged, queue, from: .waiting) }
    guard !reading.builder.members.isEmpty else {
      if claim.types == .all { try expectNone(queue) }
      return nil
    }
    return try record(claim, queue, reading.builder, clock)
  }

  /// Rows that a trigger let go, after crashes: a packet of one trigger.
  private func takeReleased(
    _ claim: Claim, _ queue: QueueID, _ types: TypeChoice, _ clock: ClockSetting
  ) throws(SQLiteError) -> ClaimedPacket? {
    guard !state[queue].releases.isEmpty else { return nil }
    var crashes = RowWalk<RowHead.Column>(
      .crash, queue, after: state[queue].cursor(for: claim.types)[.crash], transaction)
    let hasCrash = try crashes.next() != nil
    crashes.reset()
    if hasCrash { return nil }
    for release in state[queue].releases where release.devices == 0 {
      var reading = RowReading(builder(for: claim, queue), queue, rule: release.rule, transaction)
      for (place, run) in state[queue].segments.pieces(of: release.members) {
        let table = RowTable(queue, number: state[queue].segments[place].number)
        if try !take(run, of: table, types, into: &reading) { break }
      }
      let (taken, damaged) = (reading.builder.members, reading.damaged)
      try transaction.hold(IDRuns(union: [taken, damaged]), queue)
      if !damaged.isEmpty { try transaction.quarantine(damaged, queue, from: .waiting) }
      if !taken.isEmpty { return try record(claim, queue, reading.builder, clock, rule: release.rule) }
    }
    return nil
  }

  /// - Returns: false: the packet is closed.
  private func take(
    _ run: IDRuns.Run, of table: RowTable, _ types: TypeChoice, into reading: inout RowReading
  ) throws(SQLiteError) -> Bool {
    let rows = try transaction.statement(.rows(.readRange, table)).bind([":first": run.first, ":last": run.last])
    defer { rows.reset() }
    while !reading.builder.isFull {
      guard let row = try rows.next(of: StoredRow.Column.self) else { return true }
      let stored = StoredRow(row, hasPayload: table.queue.kind.hasPayload)
      if types.contains(stored.type), try !reading.take(stored, row) { return false }
    }
    return false
  }

  private func builder(for claim: Claim, _ queue: QueueID) -> PacketBuilder {
    let itemsMax = min(claim.itemsMax, claim.kind.packetRowsMax ?? .max)
    let rows = min(itemsMax, state[queue].ledger[.waiting])
    return PacketBuilder(
      itemsMax: itemsMax, bytesMax: claim.bytesMax, metaBytesMax: claim.metaBytesMax,
      metaBytesExpected: state[queue].metaBytesExpected(of: rows, kind: claim.kind),
      spare: claim.spare?.take() ?? [])
  }

  /// Takes the waiting rows of one priority in their order. - Returns: whether the packet is closed.
  private func walk(
    _ priority: Priority, _ queue: QueueID, _ types: TypeChoice, after: inout Int64, into reading: inout RowReading
  ) throws(SQLiteError) -> Bool {
    var rows = RowWalk<StoredRow.Column>(
      priority, queue, after: after, transaction)
    defer { rows.reset() }
    let setBack = state[queue].setBack  // once: a look for each row would copy the state for each
    while !reading.builder.isFull {
      guard let row = try rows.next() else {
        after = rows.passed
        return false
      }
      let stored = StoredRow(row, hasPayload: queue.kind.hasPayload)
      if types.contains(stored.type), setBack.run(of: stored.id) == nil, try !reading.take(stored, row) {
        after = stored.id - 1
        return true
      }
      after = stored.id
    }
    return true
  }

  /// - Throws: `invalidContent` if the ledger counts waiting rows that even a walk from the tree's beginning does not
  ///   meet. The cause is an id that was changed on the disk: it ends a walk early, or leads a search past rows.
  private func expectNone(_ queue: QueueID) throws(SQLiteError) {
    guard state[queue].claimable > 0, state.salvage.files.isEmpty, state[queue].setBack.isEmpty else { return }
    for priority in Priority.leaving {
      var rows = RowWalk<RowHead.Column>(priority, queue, transaction)
      defer { rows.reset() }
      if try rows.next() != nil { return state[queue].setCursor(.bases, for: .all) }
    }
    throw .invalidContent
  }

  private func record(
    _ claim: Claim, _ queue: QueueID, _ builder: PacketBuilder, _ clock: ClockSetting, rule: String? = nil
  ) throws(SQLiteError) -> ClaimedPacket {
    // The packet's record is enough: the ledger's line, on a page of its own, is written when the packet is settled.
    state[queue].ledger.move(builder.members.count, from: .waiting, to: .claimed)
    // The counts of memory that the packet says outlive a loss of power.
    try MemoryNotes(transaction).write(queue.namespace)
    let packet = PacketRecord(
      id: claim.packetID, queue: queue, position: (state[queue].packets.last?.position ?? 0) + 1,
      createdTime: claim.unixMilliseconds, bytes: builder.bytes, hasClientIDs: builder.hasClientIDs,
      header: state.ledger(queue).header(
        epoch: transaction.memory.epoch.text, store: state.records.stores[queue.namespace]?.latest),
      members: builder.members, rule: rule, clock: transaction.memory.clock.stamp())
    try transaction.statement(PacketStatement.insert).run(inserting: packet)
    state[queue].packets.append(packet)
    return claimed(packet, builder, clock)
  }

  private func claimed(_ packet: PacketRecord, _ builder: PacketBuilder, _ clock: ClockSetting) -> ClaimedPacket {
    ClaimedPacket(
      id: packet.id, namespace: state.names.namespaces[packet.queue.namespace] ?? .prism, kind: packet.queue.kind,
      ledgerHeader: packet.header, metas: builder.metas,
      itemCount: builder.members.count, payloads: builder.payloads, clock: clock)
  }

  // MARK: Reading again

  /// The rows that `read` found of a packet in flight.
  struct Found {
    fileprivate let record: PacketRecord
    fileprivate let whole: IDRuns
    /// nil if the packet has no whole row.
    let packet: ClaimedPacket?
    /// Rows of it are damaged or missing.
    var isDamaged: Bool { whole.count < record.members.count }
  }

  /// nil if there is no such packet.
  func read(_ id: PacketID) throws(SQLiteError) -> Found? {
    guard let (queue, place) = state.find(id) else { return nil }
    let record = state[queue].packets[place]
    let clock = transaction.memory.clock.read()
    let builder = try RowReading.read(record.members, of: queue, rule: record.rule, transaction)
    let packet = builder.members.isEmpty ? nil : claimed(record, builder, clock)
    return Found(record: record, whole: builder.members, packet: packet)
  }

  /// Takes the damaged rows out of a packet in flight. - Returns: the rest; nil if no row is left: then it is gone.
  func repair(_ found: Found) throws(SQLiteError) -> ClaimedPacket? {
    let (packet, queue, whole) = (found.record, found.record.queue, found.whole)
    try transaction.quarantine(packet.members.subtracting(Set(whole.ids)), queue, from: .claimed)
    guard let place = state[queue].packets.firstIndex(where: { $0.id == packet.id }) else { return found.packet }
    guard !whole.isEmpty else {
      state[queue].packets.remove(at: place)
      try Settlement(transaction).delete(packet.id)
      return nil
    }
    let bytes = try transaction.bytes(of: whole, queue)
    state[queue].packets[place].members = whole
    state[queue].packets[place].bytes = bytes
    try transaction.statement(PacketStatement.update).run([
      ":bytes": bytes, ":members": whole.text, ":checksum": state[queue].packets[place].checksum,
      ":id": packet.id.bytes,
    ])
    return found.packet
  }
}

/// Types that a claim may take, by their numbers.
private struct TypeChoice {
  private let numbers: Set<Int64>
  private let takesListed: Bool

  init(_ filter: Claim.TypeFilter, _ names: Names) {
    switch filter {
    case .all: (numbers, takesListed) = ([], false)
    case .only(let types): (numbers, takesListed) = (Self.numbers(of: types, names), true)
    case .except(let types): (numbers, takesListed) = (Self.numbers(of: types, names), false)
    }
  }

  private static func numbers(of types: TypeSet, _ names: Names) -> Set<Int64> {
    if let listed = types.names { return Set(listed.compactMap(names.number(of:))) }
    return Set(names.types.filter { types.contains($0.value) }.keys)
  }

  func contains(_ type: Int64) -> Bool { numbers.contains(type) == takesListed }
}
