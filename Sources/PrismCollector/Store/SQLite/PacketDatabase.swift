import PrismPacket
import PrismProtocol
import PrismSQLite

/// An open `collector.db`, for the one queue that owns it: what is done within its transactions.
final class PacketDatabase {
  let connection: SQLiteConnection
  let streams: StreamTable
  let tables: StoreTables
  private let packer: RestPacker
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
    (tables, streams) = (StoreTables(SQLiteDriver(connection)), try StreamTable(connection))
    packer = try SQLiteError.packing { () throws(PacketError) in try RestPacker() }
    noteDay = try connection.prepare("INSERT OR IGNORE INTO days VALUES (:day, :first_report)")
    let newest = try connection.firstInt("SELECT last FROM blocks ORDER BY id DESC LIMIT 1") ?? 0
    nextReport = max(newest, try connection.firstInt("SELECT value FROM facts WHERE name = 'newest_report'") ?? 0) + 1
  }

  func set(_ fact: String, _ value: Int64) throws(SQLiteError) {
    try connection.execute("REPLACE INTO facts VALUES ('\(fact)', \(value))")
  }

  func fact(_ name: String) throws(SQLiteError) -> Int64? {
    try connection.firstInt("SELECT value FROM facts WHERE name = '\(name)'")
  }

  var records: RecordTables { tables.records }

  /// No report gets an id up to this one any more.
  func skipReports(upTo id: Int64) throws(SQLiteError) {
    guard id >= nextReport else { return }
    nextReport = id + 1
    try set("newest_report", id)
  }

  // MARK: Reports

  /// Adds a packet's reports as one block.
  func add(_ packet: OpenedPacket, chainIsBroken: Bool, receivedTime: Int64, day: Int64) throws(SQLiteError) {
    guard !packet.rows.isEmpty else { return }
    try begin(day)
    let context = packet.delivery.context
    let run = ReportBlock.Run(
      first: nextReport, count: packet.rows.count, stream: StreamID(context), packet: context.packetID,
      received: receivedTime, chainIsBroken: chainIsBroken, correction: packet.delivery.clockCorrection,
      payloadBytes: packet.payloads.map(\.count))
    let row = try SQLiteError.packing { () throws(PacketError) in
      try ReportBlock(runs: [run], text: packet.text).row(packet.reports, packer)
    }
    let payloads = packet.payloads.enumerated().map { (run.first + Int64($0), $1) }
    try SQLiteError.only {
      try tables.insert(row.head, row.body)
      try tables.insert(payloads: payloads)
    }
    nextReport += Int64(run.count)
  }

  private func begin(_ day: Int64) throws(SQLiteError) {
    guard day != notedDay else { return }
    noteDay.bind(":day", day)
    noteDay.bind(":first_report", nextReport)
    try noteDay.run()
    notedDay = day
  }

  /// The last row of `packets` that was taken over from another database, without the reports.
  static let adoptedFact = "adopted_packet"

  /// A block of another database, under the ids that it has there. Packets that were stored here are left out: their ids
  /// could not be read there. - Returns: how many reports it brings; 0, too, if there are reports of these ids.
  func adopt(_ found: DatabaseSource.Found) throws(SQLiteError) -> Int {
    try SQLiteError.only {
      guard try tables.heads(found.head.ids, isNewestFirst: false, limit: 1).isEmpty else { return 0 }
      let adopted = try fact(Self.adoptedFact) ?? .max
      var (stored, unknown) = (Set<Int64>(), [(PacketID, of: Int64, number: Int64)]())
      for run in found.block.block.runs {
        let stream = try streams.findOrAdd(run.stream)
        if let row = try streams.row(of: run.packet, of: stream.number) {
          if row > adopted { stored.formUnion(run.ids) }
        } else {
          unknown.append((run.packet, stream.number, stream.packets))
        }
      }
      let isWhole = stored.isEmpty
      let kept = try isWhole ? (head: found.head, body: found.body) : found.block.without(stored)?.row()
      guard let kept else { return 0 }
      try tables.insert(kept.head, kept.body)
      try tables.insert(payloads: found.payloads.filter { !stored.contains($0.report) })
      for (packet, stream, number) in unknown { try streams.add(packet, of: stream, number: number, day: 0) }
      return kept.head.rows
    }
  }

  // MARK: Merging

  static let mergedFact = "merged_report"

  /// The ids at which days of service begin, ascending.
  func dayStarts() throws(SQLiteError) -> [Int64] {
    var starts: [Int64] = []
    try connection.prepare("SELECT first_report FROM days ORDER BY first_report")
      .forEachRow(of: DayColumn.self) { starts.append($0.int64(.firstReport)) }
    return starts
  }

  private enum DayColumn: String, SQLiteColumn { case firstReport = "first_report" }

  /// Puts one block in the place of others, in one transaction, if they are still as they were read.
  func take(_ merge: BlockMerge.Result) throws(SQLiteError) {
    try connection.transaction { () throws(SQLiteError) in
      switch merge {
      case .wait: break
      case .stays(let id): try set(Self.mergedFact, id)
      case .merged(let former, let head, let body):
        let isReplaced = try SQLiteError.only {
          guard try tables.heads(head.ids, isNewestFirst: false, limit: former.count + 1) == former else {
            return false
          }
          try tables.replace(by: head, body)
          return true
        }
        guard isReplaced else { return }
        try set(Self.mergedFact, head.last)
      }
    }
  }
}

extension SQLiteError {
  /// Packing fails without memory only.
  fileprivate static func packing<Result>(
    _ body: () throws(PacketError) -> Result
  ) throws(SQLiteError) -> Result {
    do throws(PacketError) { return try body() } catch {
      throw SQLiteError(code: -3, message: "reports can't be packed: \(error)")
    }
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
    update.bind(":id", stream.number)
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
