import PrismProtocol
import PrismSQLite

/// The tables `streams` and `packets` of `collector.db`: each sender's stream of packets, and the ids of its packets.
struct StreamTable {
  struct Stream {
    var id: Int64
    var packets: Int64
    /// Packets up to this time may be of those that are forgotten.
    var forgottenTime: Int64?
  }

  private let findStream: SQLiteStatement, insertStream: SQLiteStatement, updateStream: SQLiteStatement
  private let findPacket: SQLiteStatement, insertPacket: SQLiteStatement, newestPacket: SQLiteStatement

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
        received_time = :received_time WHERE id = :id
      """)
    findPacket = try connection.prepare("SELECT 1 FROM packets WHERE stream = :stream AND packet = :packet")
    newestPacket = try connection.prepare("SELECT max(packet) AS packet FROM packets WHERE stream = :stream")
    insertPacket = try connection.prepare(
      "INSERT OR IGNORE INTO packets (stream, packet, number, day) VALUES (:stream, :packet, :number, :day)")
  }

  private enum NewestColumn: String, SQLiteColumn { case packet }
  private enum Column: String, SQLiteColumn {
    case id = "n.id"
    case packets = "s.packets"
    case forgottenTime = "s.forgotten_time"
    /// The table has the same name as its index.
    case isWhole = "s.device = n.device AND s.namespace = n.namespace AND s.kind = n.kind"
  }

  /// nil for a sender that is new. - Throws: damage, if the two copies of its name differ.
  func find(_ name: StreamID) throws(SQLiteError) -> Stream? {
    Self.bind(findStream, name)
    return try findStream.first(of: Column.self) { (row) throws(SQLiteError) in
      guard row.bool(.isWhole) else { throw .differ("streams", row.int64(.id)) }
      return Stream(
        id: row.int64(.id), packets: row.int64(.packets), forgottenTime: row.integer(.forgottenTime))
    }
  }

  /// The stream of a sender that is new, or not.
  func findOrAdd(_ name: StreamID, receivedTime: Int64 = 0) throws(SQLiteError) -> Stream {
    if let known = try find(name) { return known }
    Self.bind(insertStream, name)
    insertStream.bind(":received_time", receivedTime)
    return Stream(id: try insertStream.firstInt() ?? 0, packets: 0)
  }

  private static func bind(_ statement: SQLiteStatement, _ stream: StreamID) {
    statement.bind(":device", stream.device)
    statement.bind(":namespace", stream.namespace.text)
    statement.bind(":kind", stream.kind.name)
  }

  func has(_ packet: PacketID, of stream: Int64) throws(SQLiteError) -> Bool {
    findPacket.bind(":stream", stream)
    findPacket.bind(":packet", packet.bytes)
    return try findPacket.hasRow()
  }

  /// Whether a packet of a sender is known, on any connection.
  static func has(
    _ packet: PacketID, of stream: StreamID, in connection: SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    let select = try connection.prepare(
      """
      SELECT 1 FROM streams s WHERE device = :device AND namespace = :namespace AND kind = :kind
      AND (last_packet = :packet OR EXISTS (SELECT 1 FROM packets WHERE stream = s.id AND packet = :packet))
      """)
    bind(select, stream)
    select.bind(":packet", packet.bytes)
    return try select.hasRow()
  }

  /// The time of the newest id that is known, in milliseconds since 1970; nil if no id is known.
  func newestTime(of stream: Int64) throws(SQLiteError) -> Int64? {
    newestPacket.bind(":stream", stream)
    return try newestPacket.first(of: NewestColumn.self) { row in
      row.data(.packet).flatMap { PacketID(bytes: $0) }?.unixMilliseconds
    }
  }

  /// - Parameter number: the packet's place in its stream, from 1.
  func add(_ packet: PacketID, of stream: Int64, number: Int64, day: Int64) throws(SQLiteError) {
    insertPacket.bind(":stream", stream)
    insertPacket.bind(":packet", packet.bytes)
    insertPacket.bind(":number", number)
    insertPacket.bind(":day", day)
    try insertPacket.run()
  }

  /// Makes `delivery` the last packet of its stream.
  func note(_ delivery: Delivery, of stream: Int64, receivedTime: Int64) throws(SQLiteError) {
    updateStream.bind(":id", stream)
    updateStream.bind(":packet", delivery.context.packetID.bytes)
    updateStream.bind(":ledger", delivery.ledger)
    updateStream.bind(":received_time", receivedTime)
    try updateStream.run()
  }
}

extension SQLiteError {
  /// A name in `streams` is not what its index has.
  static func differ(_ table: String, _ id: Int64) -> SQLiteError {
    .corrupt("row \(id) of \(table) has another name in its index")
  }
}
