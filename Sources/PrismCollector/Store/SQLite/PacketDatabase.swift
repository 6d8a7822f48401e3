import PrismPacket
import PrismProtocol
import PrismSQLite

/// An open `collector.db`, for the one queue that owns it: what is done within its transactions.
final class PacketDatabase {
  let connection: SQLiteConnection
  private let findStream: SQLiteStatement, insertStream: SQLiteStatement, updateStream: SQLiteStatement
  private let findPacket: SQLiteStatement, insertPacket: SQLiteStatement
  private let findType: SQLiteStatement, insertType: SQLiteStatement
  private let insertReport: SQLiteStatement, noteType: SQLiteStatement, noteStream: SQLiteStatement
  private let noteDay: SQLiteStatement
  /// Of the next report. Ids only rise, over a database that replaces a damaged one too.
  private(set) var nextReport: Int64
  private var types: [TypeName: Int64] = [:]
  private var lastType: (namespace: NamespaceName, name: ArraySlice<UInt8>, id: Int64)?
  /// The noted facts of the block that reports are written to.
  private var block: (number: Int64, types: Set<Int64>, streams: Set<Int64>) = (-1, [], [])
  private var notedDay: Int64 = -1

  private struct TypeName: Hashable { let namespace: NamespaceName, name: String }
  private static let typesMax = 10_000

  struct Stream {
    var id: Int64
    var packets: Int64
    /// Packets up to this time may be of those that are forgotten.
    var forgottenTime: Int64?
  }

  /// Opens the file, and makes its tables if it has no tables.
  /// - Throws: `isCorruption` where it is damaged.
  init(path: String, vfs: String? = nil) throws(SQLiteError) {
    let connection = try SQLiteConnection(.init(path: path, vfs: vfs))
    self.connection = connection
    try connection.execute(PacketSchema.settings)
    if try connection.firstInt("SELECT count(*) FROM sqlite_schema") == 0 {
      try connection.transaction { () throws(SQLiteError) in try connection.execute(PacketSchema.sql) }
    }
    let prepare = { (sql: String) throws(SQLiteError) in try connection.prepare(sql) }
    findStream = try prepare(
      """
      SELECT \(StreamColumn.list) FROM streams
      WHERE device = :device AND namespace = :namespace AND kind = :kind
      """)
    insertStream = try prepare(
      """
      INSERT INTO streams (device, namespace, kind, packets, received_time)
      VALUES (:device, :namespace, :kind, 0, :received_time) RETURNING id
      """)
    updateStream = try prepare(
      """
      UPDATE streams SET last_packet = :packet, packets = packets + 1, ledger = coalesce(:ledger, ledger),
        received_time = :received_time WHERE id = :id
      """)
    findPacket = try prepare("SELECT 1 FROM packets WHERE stream = :stream AND packet = :packet")
    insertPacket = try prepare(
      "INSERT OR IGNORE INTO packets (stream, packet, number, day) VALUES (:stream, :packet, :number, :day)")
    findType = try prepare("SELECT id FROM types WHERE namespace = :namespace AND type = :type")
    insertType = try prepare("INSERT INTO types (namespace, type) VALUES (:namespace, :type) RETURNING id")
    insertReport = try prepare(ReportRow.insert(into: "reports", "OR IGNORE"))
    noteType = try prepare("INSERT OR IGNORE INTO type_blocks VALUES (:key, :block)")
    noteStream = try prepare("INSERT OR IGNORE INTO stream_blocks VALUES (:key, :block)")
    noteDay = try prepare("INSERT OR IGNORE INTO days VALUES (:day, :first_report)")
    let newest = try connection.firstInt("SELECT max(id) FROM reports") ?? 0
    nextReport = max(newest, try connection.firstInt("SELECT value FROM facts WHERE name = 'newest_report'") ?? 0) + 1
  }

  func set(_ fact: String, _ value: Int64) throws(SQLiteError) {
    try connection.execute("REPLACE INTO facts VALUES ('\(fact)', \(value))")
  }

  func fact(_ name: String) throws(SQLiteError) -> Int64? {
    try connection.firstInt("SELECT value FROM facts WHERE name = '\(name)'")
  }

  /// No report gets an id up to this one any more.
  func skipReports(upTo id: Int64) throws(SQLiteError) {
    guard id >= nextReport else { return }
    nextReport = id + 1
    try set("newest_report", id)
  }

  // MARK: Streams and packets

  func stream(_ name: StreamID) throws(SQLiteError) -> Stream? {
    bind(findStream, name)
    return try findStream.first(of: StreamColumn.self) { row in
      Stream(
        id: row.int64(.id), packets: row.int64(.packets), forgottenTime: row.integer(.forgottenTime))
    }
  }

  private enum StreamColumn: String, SQLiteColumn {
    case id, packets
    case forgottenTime = "forgotten_time"
  }

  private func addStream(_ name: StreamID, receivedTime: Int64) throws(SQLiteError) -> Stream {
    bind(insertStream, name)
    insertStream.bind(":received_time", receivedTime)
    return Stream(id: try insertStream.firstInt() ?? 0, packets: 0)
  }

  /// Of a sender that is new, or not.
  func streamOrNew(_ name: StreamID, receivedTime: Int64 = 0) throws(SQLiteError) -> Stream {
    if let known = try stream(name) { return known }
    return try addStream(name, receivedTime: receivedTime)
  }

  private func bind(_ statement: SQLiteStatement, _ stream: StreamID) {
    statement.bind(":device", stream.device)
    statement.bind(":namespace", stream.namespace.text)
    statement.bind(":kind", stream.kind.name)
  }

  func has(_ packet: PacketID, of stream: Int64) throws(SQLiteError) -> Bool {
    findPacket.bind(":stream", stream)
    findPacket.bind(":packet", packet.bytes)
    return try findPacket.hasRow()
  }

  func add(_ packet: PacketID, of stream: Int64, number: Int64, day: Int64) throws(SQLiteError) {
    insertPacket.bind(":stream", stream)
    insertPacket.bind(":packet", packet.bytes)
    insertPacket.bind(":number", number)
    insertPacket.bind(":day", day)
    try insertPacket.run()
  }

  func note(_ delivery: Delivery, of stream: Int64, receivedTime: Int64) throws(SQLiteError) {
    updateStream.bind(":id", stream)
    updateStream.bind(":packet", delivery.context.packetID.bytes)
    updateStream.bind(":ledger", delivery.ledger)
    updateStream.bind(":received_time", receivedTime)
    try updateStream.run()
  }

  // MARK: Reports

  /// The columns that all reports of a packet have in common.
  struct ReportHead {
    var stream: Int64
    var packet: [UInt8]
    var namespace: NamespaceName
    var chainIsBroken: Bool
    var receivedTime: Int64
  }

  func add(_ packet: OpenedPacket, _ head: ReportHead, day: Int64) throws(SQLiteError) {
    if day != notedDay {
      noteDay.bind(":day", day)
      noteDay.bind(":first_report", nextReport)
      try noteDay.run()
      notedDay = day
    }
    head.bind(to: SQLiteInsert(insertReport))
    lastType = nil
    for (index, row) in packet.rows.enumerated() {
      let type = try self.type(packet.bytes[row.type], head.namespace)
      try add(packet, index, row, head, type: type)
      try note(type: type, stream: head.stream, of: nextReport)
      nextReport += 1
    }
    lastType = nil  // it refers to the packet's bytes
  }

  private func add(
    _ packet: OpenedPacket, _ index: Int, _ row: OpenedPacket.Row, _ head: ReportHead, type: Int64
  ) throws(SQLiteError) {
    let payload = packet.payload(index)
    let insert = SQLiteInsert<ReportRow.Column>(insertReport)
    insert.bind(.id, nextReport)
    insert.bind(.type, type)
    insert.bind(.createdTime, row.createdTime)
    // Without a copy: the arrays outlive the step.
    let result = packet.bytes.withUnsafeBytes { bytes -> Result<Void, SQLiteError> in
      let (meta, reportID) = (part(bytes, row.meta), part(bytes, row.reportID))
      insert.bind(.reportID, uncopiedText: reportID)
      insert.bind(.meta, uncopiedText: meta)
      return (payload ?? []).withUnsafeBytes { bytes in
        if payload != nil { insert.bind(.payload, uncopiedBlob: bytes) } else { insert.bindNull(.payload) }
        var sum = ReportSum(
          head, id: nextReport, type: type, created: row.createdTime, reportID: reportID, meta: meta,
          payloadBytes: payload?.count)
        sum.add(payload: bytes)
        insert.bind(.sum, sum.value)
        do throws(SQLiteError) { return .success(try insertReport.run()) } catch { return .failure(error) }
      }
    }
    try result.get()
  }

  /// An empty text needs an address too; without one SQLite takes it for NULL.
  private func part(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) -> UnsafeRawBufferPointer {
    range.isEmpty
      ? UnsafeRawBufferPointer(start: bytes.baseAddress, count: 0) : UnsafeRawBufferPointer(rebasing: bytes[range])
  }

  private func type(_ name: ArraySlice<UInt8>, _ namespace: NamespaceName) throws(SQLiteError) -> Int64 {
    if let lastType, lastType.name == name, lastType.namespace == namespace { return lastType.id }
    let id = try type(String(decoding: name, as: UTF8.self), namespace)
    lastType = (namespace, name, id)
    return id
  }

  func type(_ name: String, _ namespace: NamespaceName) throws(SQLiteError) -> Int64 {
    let key = TypeName(namespace: namespace, name: name)
    if let id = types[key] { return id }
    if types.count >= Self.typesMax { types = [:] }
    var id: Int64?
    for statement in [findType, insertType] where id == nil {
      statement.bind(":namespace", namespace.text)
      statement.bind(":type", name)
      id = try statement.firstInt()
    }
    types[key] = id
    return id ?? 0
  }

  private func note(type: Int64, stream: Int64, of report: Int64) throws(SQLiteError) {
    let number = report >> PacketSchema.blockBits
    if number != block.number { block = (number, [], []) }
    if block.types.insert(type).inserted { try note(noteType, type, number) }
    if block.streams.insert(stream).inserted { try note(noteStream, stream, number) }
  }

  private func note(_ statement: SQLiteStatement, _ key: Int64, _ block: Int64) throws(SQLiteError) {
    statement.bind(":key", key)
    statement.bind(":block", block)
    try statement.run()
  }

  /// A report of another database, under the id that it has there. - Returns: false: there is one of this id.
  func add(_ report: StoredReport, _ head: ReportHead) throws(SQLiteError) -> Bool {
    let type = try type(report.type, head.namespace)
    try insertReport.run(inserting: ReportRow(report: report, head: head, type: type))
    guard connection.changes == 1 else { return false }
    let number = report.id >> PacketSchema.blockBits
    try note(noteType, type, number)
    try note(noteStream, head.stream, number)
    return true
  }
}

// MARK: - What another database knew

extension PacketDatabase {
  func adopt(_ known: DatabaseSource.KnownStream) throws(SQLiteError) {
    let stream = try streamOrNew(known.name)
    let update = try connection.prepare(
      """
      UPDATE streams SET packets = max(packets, :packets), last_packet = coalesce(last_packet, :last_packet),
        ledger = coalesce(ledger, :ledger),
        forgotten_time = coalesce(max(forgotten_time, :forgotten_time), forgotten_time, :forgotten_time) WHERE id = :id
      """)
    update.bind(":id", stream.id)
    update.bind(":packets", known.packets)
    update.bind(":last_packet", known.lastPacket)
    update.bind(":ledger", known.ledger)
    update.bind(":forgotten_time", known.forgottenTime)
    try update.run()
  }

  /// How many of the packets that streams count have no id here. A stream's packets are numbered without gaps, and the
  /// oldest are forgotten first.
  func missingIDs() throws(SQLiteError) -> Int64 {
    try connection.firstInt(
      """
      SELECT sum(max(0, s.packets - coalesce(p.first, 1) + 1 - coalesce(p.ids, 0)))
      FROM streams s LEFT JOIN (SELECT stream, min(number) AS first, count(*) AS ids FROM packets GROUP BY stream) p
        ON p.stream = s.id
      """) ?? 0
  }
}
