import PrismProtocol
import PrismSQLite

// A group of packets within its transaction.
extension PacketDatabase {
  /// Stores the packets that are new, and says what became of each.
  /// - Parameters:
  ///   - receivedTime: milliseconds since 1970.
  ///   - day: on which day of service they came.
  ///   - idsSince, store: as of `PacketGroup`.
  func take(
    _ submissions: [PacketSubmission], receivedTime: Int64, day: Int64, idsSince: Int64, in store: StoreMark
  ) throws(SQLiteError) -> [PacketOutcome] {
    var group = PacketGroup(submissions, try streams.known(to: submissions), idsSince: idsSince, in: store)
    var numbers = group.streams.compactMapValues(\.number)
    for (packet, name, chainIsBroken) in group.stored {
      let stream = if let known = numbers[name] { known } else { try streams.insert(name, receivedTime: receivedTime) }
      numbers[name] = stream
      let number = try streams.note(packet.delivery, of: stream, receivedTime: receivedTime)
      try streams.add(packet.delivery.context.packetID, of: stream, number: number, day: day)
      guard packet.records == nil else { continue }
      try add(packet, chainIsBroken: chainIsBroken, receivedTime: receivedTime, day: day)
    }
    try SQLiteError.only { try group.carryOut(records, numbers, now: receivedTime) }
    return group.outcomes
  }
}
