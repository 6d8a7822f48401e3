import PrismPacket
import PrismProtocol
import PrismSQLite

/// An open `collector.db`, for the one queue that owns it: what is done within its transactions.
final class PacketDatabase {
  let connection: SQLiteConnection
  let streams: StreamTable
  let records: SQLiteRecordTable
  private var types: TypeTable
  private var blocks: BlockIndex
  private let insertReport: SQLiteStatement, noteDay: SQLiteStatement
  /// Of the next report. Ids only rise, over a database that replaces a damaged one too.
  private(set) var nextReport: Int64
  private var notedDay: Int64 = -1

  /// Opens the file, and makes its tables if it has no tables.
  /// - Throws: `isCorruption` where it is damaged.
  init(path: String, vfs: String? = nil) throws(SQLiteError) {
    let connection = try SQLiteConnection(.init(path: path, vfs: vfs))
    self.connection = connection
    try connection.execute(PacketSchema.settings)
    if try connection.firstInt("SELECT count(*) FROM sqlite_schema") == 0 {
      try connection.transaction { () throws(SQLiteError) in try connection.execute(PacketSchema.sql) }
    }
    try SQLiteRecordTable.make(in: connection)
    records = SQLiteRecordTable(connection: connection)
    (streams, types) = (try StreamTable(connection), try TypeTable(connection))
    blocks = try BlockIndex(connection)
    insertReport = try connection.prepare(ReportRow.insert(into: "reports", "OR IGNORE"))
    noteDay = try connection.prepare("INSERT OR IGNORE INTO days VALUES (:day, :first_report)")
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
    types.forgetLast()
    for (index, row) in packet.rows.enumerated() {
      let type = try types.number(of: packet.bytes[row.type], head.namespace)
      try add(packet, index, row, head, type: type)
      try blocks.note(type: type, stream: head.stream, ofNewest: nextReport)
      nextReport += 1
    }
    types.forgetLast()
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

  /// A report of another database, under the id that it has there. - Returns: false: there is one of this id.
  func add(_ report: StoredReport, _ head: ReportHead) throws(SQLiteError) -> Bool {
    let type = try types.number(of: report.type, head.namespace)
    try insertReport.run(inserting: ReportRow(report: report, head: head, type: type))
    guard connection.changes == 1 else { return false }
    try blocks.note(type: type, stream: head.stream, of: report.id)
    return true
  }
}

// MARK: - What another database knew

extension PacketDatabase {
  func adopt(_ known: DatabaseSource.KnownStream) throws(SQLiteError) {
    let stream = try streams.findOrAdd(known.name)
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
