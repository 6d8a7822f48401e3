import PrismProtocol
import PrismSQL
import PrismSQLite

/// The tables `streams` and `packets` of `collector.db`: each sender's stream of packets, and the ids of its packets.
struct StreamTable {
  let statements: SQLStatements

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
  func known(to submissions: [PacketSubmission]) throws -> [StreamID: KnownStream] {
    var streams: [StreamID: KnownStream] = [:]
    for delivery in submissions.map(\.packet.delivery) {
      let name = StreamID(delivery.context)
      let found = if let known = streams[name] { known } else { try find(name) }
      guard var stream = found, let number = stream.number else { continue }
      for id in [delivery.context.packetID, delivery.dependsOn] {
        if let id, try row(of: id, of: number) != nil { stream.ids.insert(id) }
      }
      streams[name] = stream
    }
    return streams
  }

  /// nil for a sender that is new. - Throws: damage, if the two copies of its name differ.
  func find(_ name: StreamID) throws -> KnownStream? {
    let found = try statements.first(
      of: Column.self,
      """
      FROM streams n INDEXED BY streams_name LEFT JOIN streams s NOT INDEXED ON s.id = n.id
      WHERE n.device = $1 AND n.namespace = $2 AND n.kind = $3
      """, [name.device, name.namespace.text, name.kind.name])
    guard let row = found else { return nil }
    guard row.int(.isWhole) == 1 else { throw SQLiteError.differ("streams", row.int64(.id)) }
    return KnownStream(
      number: row.int64(.id), packets: row.int64(.packets),
      newestTime: PacketID(bytes: row.bytes(.newest))?.unixMilliseconds, forgottenTime: row.integer(.forgottenTime),
      forgottenUnsetTime: row.integer(.forgottenUnsetTime))
  }

  /// - Returns: its number.
  func insert(_ name: StreamID, receivedTime: Int64) throws -> Int64 {
    try statements.integer(
      """
      INSERT INTO streams (device, namespace, kind, packets, received_time) VALUES ($1, $2, $3, 0, $4) RETURNING id
      """, [name.device, name.namespace.text, name.kind.name, receivedTime]) ?? 0
  }

  func findOrAdd(_ name: StreamID) throws -> (number: Int64, packets: Int64) {
    if let known = try find(name), let number = known.number { return (number, known.packets) }
    return (try insert(name, receivedTime: 0), 0)
  }

  /// Of a packet that is known.
  func row(of packet: PacketID, of stream: Int64) throws -> Int64? {
    try statements.integer("SELECT id FROM packets WHERE stream = $1 AND packet = $2", [stream, packet.bytes])
  }

  /// - Parameter number: the packet's place in its stream, from 1.
  func add(_ packet: PacketID, of stream: Int64, number: Int64, day: Int64) throws {
    try statements.run(
      "INSERT OR IGNORE INTO packets (stream, packet, number, day) VALUES ($1, $2, $3, $4)",
      [stream, packet.bytes, number, day])
  }

  /// Makes `delivery` the last packet of its stream. - Returns: its place there, from 1.
  func note(_ delivery: Delivery, of stream: Int64, receivedTime: Int64) throws -> Int64 {
    try statements.integer(
      """
      UPDATE streams SET last_packet = $1, packets = packets + 1, ledger = coalesce($2, ledger), received_time = $3
      WHERE id = $4 RETURNING packets
      """, [delivery.context.packetID.bytes, delivery.ledger, receivedTime, stream]) ?? 0
  }
}

extension SQLiteError {
  /// A name in `streams` is not what its index has.
  static func differ(_ table: String, _ id: Int64) -> SQLiteError {
    .corrupt("row \(id) of \(table) has another name in its index")
  }
}
