import PrismPacket
import PrismProtocol
import PrismStore

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
  /// What is noted of the block that reports are written to.
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

  /// Opens the file, and makes its tables where there are none.
  /// - Throws: `isCorruption` where it is damaged.
  init(path: String, vfs: String? = nil) throws(SQLiteError) {
    var options = SQLiteConnection.Options(path: path)
    options.vfs = vfs
    let connection = try SQLiteConnection(options)
    self.connection = connection
    try connection.execute(PacketSchema.settings)
    if try connection.firstInt("SELECT count(*) FROM sqlite_schema") == 0 {
      try connection.transaction { () throws(SQLiteError) in try connection.execute(PacketSchema.sql) }
    }
    let prepare = { (sql: String) throws(SQLiteError) in try connection.prepare(sql) }
    findStream = try prepare(
      "SELECT id, packets, forgotten_time FROM streams WHERE device = ? AND namespace = ? AND kind = ?")
    insertStream = try prepare(
      "INSERT INTO streams (device, namespace, kind, packets, received_time) VALUES (?, ?, ?, 0, ?) RETURNING id")
    updateStream = try prepare(
      """
      UPDATE streams SET last_packet = ?2, packets = packets + 1, ledger = coalesce(?3, ledger), received_time = ?4
      WHERE id = ?1
      """)
    findPacket = try prepare("SELECT 1 FROM packets WHERE stream = ? AND packet = ?")
    insertPacket = try prepare("INSERT OR IGNORE INTO packets (stream, packet, number, day) VALUES (?, ?, ?, ?)")
    findType = try prepare("SELECT id FROM types WHERE namespace = ? AND type = ?")
    insertType = try prepare("INSERT INTO types (namespace, type) VALUES (?, ?) RETURNING id")
    insertReport = try prepare("INSERT OR IGNORE INTO reports VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
    noteType = try prepare("INSERT OR IGNORE INTO type_blocks VALUES (?, ?)")
    noteStream = try prepare("INSERT OR IGNORE INTO stream_blocks VALUES (?, ?)")
    noteDay = try prepare("INSERT OR IGNORE INTO days VALUES (?, ?)")
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
    defer { findStream.reset() }
    bind(findStream, name)
    guard try findStream.step() else { return nil }
    return Stream(
      id: findStream.int64(0), packets: findStream.int64(1),
      forgottenTime: findStream.isNull(2) ? nil : findStream.int64(2))
  }

  private func addStream(_ name: StreamID, receivedTime: Int64) throws(SQLiteError) -> Stream {
    bind(insertStream, name)
    insertStream.bind(4, receivedTime)
    var id: Int64 = 0
    try insertStream.forEachRow { id = $0.int64(0) }
    return Stream(id: id, packets: 0)
  }

  /// Of a sender that is new, or not.
  func streamOrNew(_ name: StreamID, receivedTime: Int64 = 0) throws(SQLiteError) -> Stream {
    if let known = try stream(name) { return known }
    return try addStream(name, receivedTime: receivedTime)
  }

  private func bind(_ statement: SQLiteStatement, _ stream: StreamID) {
    statement.bind(1, stream.device)
    statement.bind(2, stream.namespace.text)
    statement.bind(3, stream.kind.rawValue)
  }

  func has(_ packet: PacketID, of stream: Int64) throws(SQLiteError) -> Bool {
    defer { findPacket.reset() }
    findPacket.bind(1, stream)
    findPacket.bind(2, packet.bytes)
    return try findPacket.step()
  }

  func add(_ packet: PacketID, of stream: Int64, number: Int64, day: Int64) throws(SQLiteError) {
    insertPacket.bind(1, stream)
    insertPacket.bind(2, packet.bytes)
    insertPacket.bind(3, number)
    insertPacket.bind(4, day)
    try insertPacket.run()
  }

  func note(_ delivery: Delivery, of stream: Int64, receivedTime: Int64) throws(SQLiteError) {
    updateStream.bind(1, stream)
    updateStream.bind(2, delivery.context.packetID.bytes)
    if let ledger = delivery.ledger { updateStream.bind(3, ledger) } else { updateStream.bindNull(3) }
    updateStream.bind(4, receivedTime)
    try updateStream.run()
  }

  // MARK: Reports

  /// What all reports of a packet have in common.
  struct ReportHead {
    var stream: Int64
    var packet: [UInt8]
    var namespace: NamespaceName
    var chainIsBroken: Bool
    var receivedTime: Int64
  }

  func add(_ packet: OpenedPacket, _ head: ReportHead, day: Int64) throws(SQLiteError) {
    if day != notedDay {
      noteDay.bind(1, day)
      noteDay.bind(2, nextReport)
      try noteDay.run()
      notedDay = day
    }
    insertReport.bind(2, head.stream)
    insertReport.bind(3, head.packet)
    insertReport.bind(5, head.chainIsBroken ? 1 : 0)
    insertReport.bind(6, head.receivedTime)
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
    insertReport.bind(1, nextReport)
    insertReport.bind(4, type)
    if let createdTime = row.createdTime { insertReport.bind(7, createdTime) } else { insertReport.bindNull(7) }
    // Copied by nobody: the arrays outlive the step.
    let result = packet.bytes.withUnsafeBytes { bytes -> Result<Void, SQLiteError> in
      let (meta, reportID) = (part(bytes, row.meta), part(bytes, row.reportID))
      insertReport.bind(8, uncopiedText: reportID)
      insertReport.bind(10, uncopiedText: meta)
      return (payload ?? []).withUnsafeBytes { bytes in
        if payload != nil { insertReport.bind(11, uncopiedBlob: bytes) } else { insertReport.bindNull(11) }
        var sum = ReportSum(
          head, id: nextReport, type: type, created: row.createdTime, reportID: reportID, meta: meta,
          payloadBytes: payload?.count)
        sum.add(payload: bytes)
        insertReport.bind(9, sum.value)
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
      statement.bind(1, namespace.text)
      statement.bind(2, name)
      try statement.forEachRow { id = $0.int64(0) }
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
    statement.bind(1, key)
    statement.bind(2, block)
    try statement.run()
  }

  private static func sum(of report: StoredReport, _ head: ReportHead, type: Int64) -> ReportSum {
    report.meta.withUnsafeBytes { meta in
      Array(report.reportID.utf8).withUnsafeBytes { reportID in
        var sum = ReportSum(
          head, id: report.id, type: type, created: report.createdTime, reportID: reportID, meta: meta,
          payloadBytes: report.payload?.count)
        (report.payload ?? []).withUnsafeBytes { sum.add(payload: $0) }
        return sum
      }
    }
  }

  /// A report of another database, under the id that it has there. - Returns: false: there is one of this id.
  func add(_ report: StoredReport, _ head: ReportHead) throws(SQLiteError) -> Bool {
    let type = try type(report.type, head.namespace)
    let sum = Self.sum(of: report, head, type: type)
    insertReport.bind(1, report.id)
    insertReport.bind(2, head.stream)
    insertReport.bind(3, head.packet)
    insertReport.bind(4, type)
    insertReport.bind(5, head.chainIsBroken ? 1 : 0)
    insertReport.bind(6, head.receivedTime)
    if let created = report.createdTime { insertReport.bind(7, created) } else { insertReport.bindNull(7) }
    insertReport.bind(8, report.reportID)
    insertReport.bind(9, sum.value)
    insertReport.bind(10, String(decoding: report.meta, as: UTF8.self))
    insertReport.bind(11, report.payload)
    try insertReport.run()
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
      UPDATE streams SET packets = max(packets, ?2), last_packet = coalesce(last_packet, ?3), ledger = coalesce(ledger, ?4),
        forgotten_time = coalesce(max(forgotten_time, ?5), forgotten_time, ?5) WHERE id = ?1
      """)
    update.bind(1, stream.id)
    update.bind(2, known.packets)
    update.bind(3, known.lastPacket)
    if let ledger = known.ledger { update.bind(4, ledger) } else { update.bindNull(4) }
    if let time = known.forgottenTime { update.bind(5, time) } else { update.bindNull(5) }
    try update.run()
  }
}
