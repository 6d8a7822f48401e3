import PrismProtocol
import PrismSQLite

// The steps of one packet within a transaction.
extension PacketDatabase {
  /// Stores the packet, or says why not.
  /// - Parameters:
  ///   - day: on which day of service it came.
  ///   - idsSince: ids that were made before this may be forgotten; milliseconds since 1970.
  func take(
    _ submission: PacketSubmission, receivedTime: Int64, day: Int64, idsSince: Int64
  ) throws(SQLiteError) -> PacketOutcome {
    let delivery = submission.packet.delivery
    let (id, name) = (delivery.context.packetID, StreamID(delivery.context))
    let found = try streams.find(name)
    if let found, try streams.has(id, of: found.id) {
      guard let operations = submission.packet.records else { return .duplicate }
      let answer = try SQLiteError.only { try records.answer(to: id, operations, from: name, number: found.id) }
      return .applied(answer)
    }
    var isPredecessorKnown = false
    if let found, let dependsOn = delivery.dependsOn { isPredecessorKnown = try streams.has(dependsOn, of: found.id) }
    if !isPredecessorKnown {
      // A recorded packet names a predecessor that is forgotten, too; a device with a wrong clock names its last one.
      if let found, try mayBeForgotten(id, of: found, idsSince: idsSince) { return .tooOld }
      let isBroken = delivery.dependsOn != nil
      let isAwaited = submission.needsPredecessor || (found?.packets ?? 0) > 0 && !submission.isLate
      if isBroken, isAwaited { return .predecessorMissing }
      return try store(submission.packet, found, chainIsBroken: isBroken, receivedTime: receivedTime, day: day)
    }
    return try store(submission.packet, found, chainIsBroken: false, receivedTime: receivedTime, day: day)
  }

  /// The newest id of a stream that was forgotten of those that were made before the device's clock was set.
  static func unsetFact(of stream: Int64) -> String { "unset_\(stream)" }

  /// Whether the id, which is not known, may be of a packet that was stored. No clock alone decides: not the collector's, which
  /// may be ahead, not that of a device, whose ids may be ahead of the clock.
  private func mayBeForgotten(
    _ id: PacketID, of stream: StreamTable.Stream, idsSince: Int64
  ) throws(SQLiteError) -> Bool {
    let time = id.unixMilliseconds
    guard time >= PacketID.firstSetTime else { return time <= (try fact(Self.unsetFact(of: stream.id)) ?? -1) }
    if let forgotten = stream.forgottenTime, time <= forgotten { return true }
    guard time < idsSince, let newest = try streams.newestTime(of: stream.id) else { return false }
    return newest - PacketID.knownMilliseconds > time
  }

  private func store(
    _ packet: OpenedPacket, _ found: StreamTable.Stream?, chainIsBroken: Bool, receivedTime: Int64, day: Int64
  ) throws(SQLiteError) -> PacketOutcome {
    let context = packet.delivery.context
    let stream = if let found { found } else { try streams.findOrAdd(StreamID(context), receivedTime: receivedTime) }
    try streams.add(context.packetID, of: stream.id, number: stream.packets + 1, day: day)
    try streams.note(packet.delivery, of: stream.id, receivedTime: receivedTime)
    if let operations = packet.records {
      var applied = try SQLiteError.only {
        try records.apply(
          operations, context.packetID, from: StreamID(context), number: stream.id, now: receivedTime)
      }
      applied.isChainBroken = chainIsBroken
      return .applied(applied)
    }
    try add(packet, chainIsBroken: chainIsBroken, receivedTime: receivedTime, day: day)
    return .stored(chainIsBroken: chainIsBroken)
  }

  func state(of name: StreamID) throws(SQLiteError) -> StreamState? {
    guard let stream = try streams.find(name) else { return nil }
    let statement = try connection.prepare("SELECT \(StateColumn.list) FROM streams WHERE id = \(stream.id)")
    return try statement.first(of: StateColumn.self) { row in
      StreamState(
        lastPacket: PacketID(bytes: row.bytes(.lastPacket)), packets: row.int(.packets), ledger: row.string(.ledger))
    }
  }

  private enum StateColumn: String, SQLiteColumn {
    case lastPacket = "last_packet"
    case packets, ledger
  }
}
