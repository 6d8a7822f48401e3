import PrismProtocol
import PrismSQLite

/// Packets of operations: made of waiting changes, read again, and settled.
struct RecordPackets: PlainOperations {
  let transaction: StoreTransaction

  // MARK: Claiming

  /// - Returns: nil if no change may leave now.
  func take(_ claim: Claim) throws(SQLiteError) -> ClaimedPacket? {
    guard let records = claim.records, let namespace = state.names.number(of: claim.namespace),
      state.records.stores[namespace]?.isMarking != true
    else { return nil }
    var selection = RecordSelection(claim, records, access)
    try selection.choose()
    guard !selection.choices.isEmpty else { return nil }
    var lines: [[UInt8]] = []
    for choice in selection.choices { lines.append(try freeze(choice, claim.packetID, place: lines.count)) }
    let packets = state.records.packets[namespace] ?? []
    let packet = RecordPacketRow(
      id: claim.packetID, namespace: namespace, position: (packets.last?.position ?? 0) + 1,
      createdTime: claim.unixMilliseconds,
      header: state.records.ledger(of: namespace).header(
        epoch: transaction.memory.epoch.text, store: state.records.stores[namespace]?.latest),
      items: lines.count, clock: transaction.memory.clock.stamp())
    try transaction.statement(RecordStatement.insertPacket).run(inserting: packet)
    state.records.packets[namespace, default: []].append(packet)
    return claimed(packet, lines)
  }

  /// Writes the operation down as it will be sent. - Returns: its line.
  private func freeze(
    _ choice: RecordSelection.Choice, _ packet: PacketID, place: Int
  ) throws(SQLiteError) -> [UInt8] {
    var record = choice.record
    guard let kind = record.standing.next else { throw .invalidContent }
    let operation = RecordOperation(
      op: "\(packet).\(place)", table: state.records[reading: record.table].name, id: record.id,
      serverID: record.serverID, kind: kind, fields: choice.fields, version: record.version,
      changedTime: record.changedTime, after: state.records.down[record.table]?.sequence)
    let row = RecordOperationRow(
      packet: packet, place: place, record: record.number, table: record.table, op: operation.op, line: operation.line)
    try transaction.statement(RecordStatement.insertOperation).run(inserting: row)
    record.standing.send(isPartial: choice.isPartial)
    state.records[record.table].ledger.move(1, from: .waiting, to: .claimed)
    if choice.isPartial {
      // The part that is left out is a change of its own.
      record.position = state.records.nextPosition()
      state.records[record.table].ledger.stored += 1
      state.records[record.table].ledger[.waiting] += 1
    }
    try access.write(&record)
    return row.line
  }

  private func claimed(_ packet: RecordPacketRow, _ lines: [[UInt8]]) -> ClaimedPacket {
    ClaimedPacket(
      id: packet.id, namespace: state.names.namespaces[packet.namespace] ?? .prism, kind: .records,
      ledgerHeader: packet.header,
      metas: Array(lines.joined(separator: [UInt8(ascii: "\n")])), itemCount: lines.count, payloads: [],
      clock: transaction.memory.clock.read())
  }

  // MARK: Reading again

  /// The same plaintext. nil if there is no such packet.
  func read(_ id: PacketID) throws(SQLiteError) -> ClaimedPacket? {
    guard let (namespace, place) = state.records.find(id), let packet = state.records.packets[namespace]?[place] else {
      return nil
    }
    return claimed(packet, try operations(of: packet).map(\.line))
  }

  /// - Throws: `invalidContent` if one is damaged or missing.
  private func operations(of packet: RecordPacketRow) throws(SQLiteError) -> [RecordOperationRow] {
    let select = try transaction.statement(RecordStatement.operations).bind([":packet": packet.id.bytes])
    let operations = try select.records(of: RecordOperationRow.self)
    guard operations.count == packet.items else { throw .invalidContent }
    return operations
  }

  // MARK: Settling

  /// - Returns: false if the packet is not one of records.
  func settle(_ disposition: Disposition) throws(SQLiteError) -> Bool {
    switch disposition {
    case .delivered(let id, let receipt):
      guard let packet = try remove(id) else { return false }
      try deliver(packet, receipt.records ?? RecordReceipt())
    case .dead(let id, let cause):
      guard let packet = try remove(id) else { return false }
      for operation in try takeOperations(of: packet) {
        try refuse(operation, "status \(cause.status): \(cause.message)")
      }
    case .released(let id), .setBack(let id):
      guard let packet = try remove(id) else { return false }
      for operation in try takeOperations(of: packet) { try release(operation) }
    case .split(let id, let first, let second): return try split(id, first, second)
    }
    return true
  }

  /// Removes the packet from those in flight, in memory and in its table; its operations stay.
  private func remove(_ id: PacketID) throws(SQLiteError) -> RecordPacketRow? {
    guard let (namespace, place) = state.records.find(id) else { return nil }
    try delete(id)
    return state.records.packets[namespace]!.remove(at: place)
  }

  private func delete(_ id: PacketID) throws(SQLiteError) {
    try transaction.statement(RecordStatement.deletePacket).run([":id": id.bytes])
  }

  private func takeOperations(of packet: RecordPacketRow) throws(SQLiteError) -> [RecordOperationRow] {
    let operations = try operations(of: packet)
    try transaction.statement(RecordStatement.deleteOperations).run([":packet": packet.id.bytes])
    return operations
  }

  private func deliver(_ packet: RecordPacketRow, _ receipt: RecordReceipt) throws(SQLiteError) {
    let refused = Dictionary(receipt.refused.map { ($0.op, $0.message) }, uniquingKeysWith: { first, _ in first })
    var deletedIn: Set<Int> = []
    for operation in try takeOperations(of: packet) {
      if let message = refused[operation.op] {
        try refuse(operation, message)
      } else if try confirm(operation, receipt) {
        deletedIn.insert(operation.table)
      }
    }
    for table in deletedIn {
      try transaction.statement(RecordStatement.forgetDeletions).run([":tab": RecordRow.keptTable(of: table)])
    }
    try transaction.write(packet.id.bytes, Self.acceptedKey, packet.namespace)
  }

  /// The note that names the last packet of records that was accepted.
  static let acceptedKey = "records.accepted"

  /// - Returns: whether the record is deleted.
  private func confirm(_ operation: RecordOperationRow, _ receipt: RecordReceipt) throws(SQLiteError) -> Bool {
    var record = try record(of: operation)
    let kind = record.standing.sent
    let isGone = record.standing.confirm()
    state.records[record.table].ledger.move(1, from: .claimed, to: .delivered)
    if isGone {
      try keepDeletion(record)
      return true
    }
    if kind == .delete {
      record.serverID = nil
    } else if let given = receipt.ids[state.records[reading: record.table].name]?[record.id] {
      // The id of another store names another record here.
      if isOfKnownStore(receipt.store, record.table) { try removeOther(given, in: record.table) }
      record.serverID = given
    }
    if state.records.down[record.table] != nil { record.base = Self.base(of: operation) }
    try access.write(&record)
    return false
  }

  /// A backup of the server's may bring the record back: its deletion is sent again then.
  private func keepDeletion(_ record: RecordRow) throws(SQLiteError) {
    try access.remove(record)
    guard state.records.stores[state.records[reading: record.table].namespace] != nil else { return }
    var deletion = record
    (deletion.table, deletion.standing) = (RecordRow.keptTable(of: record.table), .ofDeletion)
    (deletion.fields, deletion.base, deletion.position) = (Array("{}".utf8), nil, state.records.nextPosition())
    try transaction.statement(RecordStatement.replace).run(inserting: deletion)
  }

  /// The store that took the packet is the one that the device's records are of.
  private func isOfKnownStore(_ receipt: StoreReceipt, _ table: Int) -> Bool {
    guard let known = state.records.stores[state.records[reading: table].namespace] else { return true }
    return (receipt.store ?? known.latest) == known.latest && !receipt.isChainBroken && !known.isMarking
  }

  /// The server took an insert for a record that came down under another name here. One that is in flight stays.
  private func removeOther(_ id: RecordID, in table: Int) throws(SQLiteError) {
    guard let other = try access.record(serverID: id, in: table), other.standing.sent == nil, other.standing.isKnown,
      DownMerging.isNamedByServer(other)
    else {
      return
    }
    if other.standing.isWaiting { state.records[table].ledger.move(1, from: .waiting, to: .removed) }
    state.records.change(other.id, in: table)
    try access.remove(other)
  }

  /// The server has the fields that were sent.
  private static func base(of operation: RecordOperationRow) -> Int64? {
    RecordOperation(line: operation.line)?.fields.map { DownMerging.base($0) }
  }

  private func refuse(_ operation: RecordOperationRow, _ message: String) throws(SQLiteError) {
    var record = try record(of: operation)
    let wasWaiting = record.standing.isWaiting
    let isGone = record.standing.refuse()
    state.records[record.table].ledger.move(1, from: .claimed, to: .dead)
    if isGone, record.serverID == nil {
      if wasWaiting { state.records[record.table].ledger.move(1, from: .waiting, to: .removed) }
      return try access.remove(record)
    }
    if isGone { record.standing = .ofDeletion }
    record.refusal = record.standing.isRefused ? message.cut(atBytes: 512) : nil
    // The program that watches its table learns of it, and reads why.
    if record.standing.isRefused { state.records.change(record.id, in: record.table) }
    try access.write(&record)
  }

  /// The operation waits again; a change made since is merged with it.
  private func release(_ operation: RecordOperationRow) throws(SQLiteError) {
    var record = try record(of: operation)
    let wasWaiting = record.standing.isWaiting
    let isGone = record.standing.release()
    state.records[record.table].ledger.move(1, from: .claimed, to: wasWaiting ? .removed : .waiting)
    if isGone, record.serverID == nil {
      state.records[record.table].ledger.move(1, from: .waiting, to: .removed)
      return try access.remove(record)
    }
    if isGone { record.standing = .ofDeletion }
    try access.write(&record)
  }

  private func record(of operation: RecordOperationRow) throws(SQLiteError) -> RecordRow {
    guard let record = try access.record(operation.record), record.table == operation.table,
      record.standing.sent != nil
    else { throw .invalidContent }
    return record
  }

  /// Both halves take the place of the whole. A packet of one operation stays as it is.
  private func split(_ id: PacketID, _ first: PacketID, _ second: PacketID) throws(SQLiteError) -> Bool {
    guard let (namespace, place) = state.records.find(id), let whole = state.records.packets[namespace]?[place] else {
      return false
    }
    guard whole.items > 1 else { return true }
    let operations = try takeOperations(of: whole)
    try delete(id)
    try transaction.statement(RecordStatement.shiftPackets).bind([":namespace": namespace, ":position": whole.position])
      .run()
    for later in state.records.packets[namespace]!.indices where later > place {
      state.records.packets[namespace]![later].position += 1
    }
    let middle = (operations.count + 1) / 2
    let halves = [(first, operations.prefix(middle)), (second, operations.dropFirst(middle))]
    var packets: [RecordPacketRow] = []
    for (offset, (id, operations)) in halves.enumerated() {
      let half = RecordPacketRow(
        id: id, namespace: namespace, position: whole.position + offset, createdTime: whole.createdTime,
        header: whole.header, items: operations.count)
      try transaction.statement(RecordStatement.insertPacket).run(inserting: half)
      for (place, operation) in operations.enumerated() {
        var operation = operation
        (operation.packet, operation.place) = (id, place)
        try transaction.statement(RecordStatement.insertOperation).run(inserting: operation)
      }
      packets.append(half)
    }
    state.records.packets[namespace]!.replaceSubrange(place...place, with: packets)
    return true
  }
}
