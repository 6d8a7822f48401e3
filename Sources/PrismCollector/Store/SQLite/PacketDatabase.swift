import PrismPacket
import PrismProtocol
import PrismSQLite

/// An open `collector.db`, for the one queue that owns it: what is done within its transactions.
final class PacketDatabase {
  let connection: SQLiteConnection
  let streams: StreamTable
  let records: RecordTables
  private var reports: ReportInserter
  private var contexts: ContextTable
  private let noteDay: SQLiteStatement
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
    records = RecordTables(SQLiteDriver(connection))
    (streams, contexts) = (try StreamTable(connection), try ContextTable(connection))
    reports = try ReportInserter(connection)
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
    try begin(day)
    let ids = try contexts.ids(of: packet, from: nextReport)
    try reports.insert(packet, head, from: nextReport, ids)
    nextReport += Int64(packet.rows.count)
  }

  private func begin(_ day: Int64) throws(SQLiteError) {
    guard day != notedDay else { return }
    noteDay.bind(":day", day)
    noteDay.bind(":first_report", nextReport)
    try noteDay.run()
    contexts.begin(day: try connection.firstInt("SELECT first_report FROM days WHERE day = \(day)") ?? nextReport)
    notedDay = day
  }

  /// A report of another database, under the id that it has there. - Returns: false: there is one of this id.
  /// - Parameter context: what its meta ends with.
  func add(_ report: StoredReport, _ head: ReportHead, _ context: StoredContext?) throws(SQLiteError) -> Bool {
    var context = context
    if let found = context, try !contexts.adopt(found, connection) { context = nil }
    return try reports.insert(report, head, context, connection)
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
