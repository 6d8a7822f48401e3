import PrismProtocol
import PrismSQLite

/// The tables `streams` and `packets` of `collector.db`: each sender's stream of packets, and the ids of its packets.
struct StreamTable {
  private let findStream: SQLiteStatement, insertStream: SQLiteStatement, updateStream: SQLiteStatement
  private let findPacket: SQLiteStatement, insertPacket: SQLiteStatement

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    findStream = try connection.prepare(
      """
      SELECT \(Column.list)
      FROM streams n INDEXED BY streams_name LEFT JOIN streams s NOT INDEXED ON s.id = n.id
      WHERE n.device = :device AND n.namespace = :namespace AND n.kind = :kind
      """)
    insertStream = try connection.prepare(
      """
      INSERT INTO streams (device, namespace, kind, packets, received_time)
      VALUES (:device, :namespace, :kind, 0, :received_time) RETURNING id
      """)
    updateStream = try connection.prepare(
      """
      UPDATE streams SET last_packet = :packet, packets = packets + 1, ledger = coalesce(:ledger, ledger),
        received_time = :received_time WHERE id = :id RETURNING packets
      """)
    findPacket = try connection.prepare("SELECT id FROM packets WHERE stream = :stream AND packet = :packet")
    insertPacket = try connection.prepare(
      "INSERT OR IGNORE INTO packets (stream, packet, number, day) VALUES (:stream, :packet, :number, :day)")
  }

  private enum Column: String, SQLiteColumn {
    case id = "n.id"
    case packets = "s.packets"
    case forgottenTime = "s.forgotten_time"
    case forgottenUnsetTime = "(SELECT value FROM facts WHERE name = 'unset_' || n.id)"
    case newest = "(SELECT max(packet) FROM packets WHERE stream = n.id)"
    /// The table has the same name as its index.
    case isWhole = "s.device = n.device AND s.namespace = n.namespace AND s.kind = n.kind"
  }

  /// The newest id of a stream that was forgotten of those that were made before the device's clock was set.
  static func unsetFact(of stream: Int64) -> String { "unset_\(stream)" }

  /// The streams of these packets, with the ids that the packets name.
  func known(to submissions: [PacketSubmission]) throws(SQLiteError) -> [StreamID: KnownStream] {
    var streams: [StreamID: KnownStream] = [:]
    for delivery in submissions.map(\.packet.delivery) {
      let name = StreamID(delivery.context)
      let found = if let known = streams[name] { known } else { try find(name) }
      guard var stream = found, let number = stream.number else { continue }
      for id in [delivery.context.packetID, delivery.dependsOn] {
        if let id, try has(id, of: number) { stream.ids.insert(id) }
      }
      streams[name] = stream
    }
    return streams
  }

  /// nil for a sender that is new. - Throws: damage, if the two copies of its name differ.
  func find(_ name: StreamID) throws(SQLiteError) -> KnownStream? {
    Self.bind(findStream, name)
    return try findStream.first(of: Column.self) { (row) throws(SQLiteError) in
      guard row.bool(.isWhole) else { throw .differ("streams", row.int64(.id)) }
      return KnownStream(
        number: row.int64(.id), packets: row.int64(.packets),
        newestTime: row.data(.newest).flatMap { PacketID(bytes: $0) }?.unixMilliseconds,
        forgottenTime: row.integer(.forgottenTime), forgottenUnsetTime: row.integer(.forgottenUnsetTime))
    }
  }

  /// - Returns: its number.
  func insert(_ name: StreamID, receivedTime: Int64) throws(SQLiteError) -> Int64 {
    Self.bind(insertStream, name)
    insertStream.bind(":received_time", receivedTime)
    return try insertStream.firstInt() ?? 0
  }

  /// The stream of a sender that is new, or not.
  func findOrAdd(_ name: StreamID) throws(SQLiteError) -> (number: Int64, packets: Int64) {
    if let known = try find(name), let number = known.number { return (number, known.packets) }
    return (try insert(name, receivedTime: 0), 0)
  }

  private static func bind(_ statement: SQLiteStatement, _ stream: StreamID) {
    statement.bind(":device", stream.device)
    statement.bind(":namespace", stream.namespace.text)
    statement.bind(":kind", stream.kind.name)
  }

  func has(_ packet: PacketID, of stream: Int64) throws(SQLiteError) -> Bool { try row(of: packet, of: stream) != nil }

  /// Of a packet that is known.
  func row(of packet: PacketID, of stream: Int64) throws(SQLiteError) -> Int64? {
    findPacket.bind(":stream", stream)
    findPacket.bind(":packet", packet.bytes)
    return try findPacket.firstInt()
  }

  /// - Parameter number: the packet's place in its stream, from 1.
  func add(_ packet: PacketID, of stream: Int64, number: Int64, day: Int64) throws(SQLiteError) {
    insertPacket.bind(":stream", stream)
    insertPacket.bind(":packet", packet.bytes)
    insertPacket.bind(":number", number)
    insertPacket.bind(":day", day)
    try insertPacket.run()
  }

  /// Makes `delivery` the last packet of its stream. - Returns: its place there, from 1.
  func note(_ delivery: Delivery, of stream: Int64, receivedTime: Int64) throws(SQLiteError) -> Int64 {
    updateStream.bind(":id", stream)
    updateStream.bind(":packet", delivery.context.packetID.bytes)
    updateStream.bind(":ledger", delivery.ledger)
    updateStream.bind(":received_time", receivedTime)
    return try updateStream.firstInt() ?? 0
  }
}

extension SQLiteError {
  /// A name in `streams` is not what its index has.
  static func differ(_ table: String, _ id: Int64) -> SQLiteError {
    .corrupt("row \(id) of \(table) has another name in its index")
  }
}
