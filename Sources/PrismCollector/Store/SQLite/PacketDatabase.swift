import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite

/// An open `collector.db`, for the one queue that owns it: what is done within its transactions.
final class PacketDatabase {
  let connection: SQLiteConnection
  let tables: StoreTables
  let session: SQLSession
  private let packer: RestPacker
  /// Of the next report. Ids only rise, over a database that replaces a damaged one too.
  private(set) var nextReport: Int64
  private var notedDay: Int64 = -1

  /// Opens the file, and makes its tables if it has no tables.
  /// - Throws: `isCorruption` where it is damaged.
  init(path: String, vfs: String? = nil) throws(SQLiteError) {
    let connection = try SQLiteConnection(.init(path: path, vfs: vfs))
    self.connection = connection
    try connection.execute(PacketSchema.settings)
    try PacketSchema.prepare(connection)
    let driver = SQLiteDriver(connection)
    (tables, session) = (StoreTables(driver), SQLSession { driver })
    packer = try SQLiteError.packing { () throws(PacketError) in try RestPacker() }
    let newest = try connection.firstInt("SELECT last FROM blocks ORDER BY id DESC LIMIT 1") ?? 0
    nextReport = max(newest, try connection.firstInt("SELECT value FROM facts WHERE name = 'newest_report'") ?? 0) + 1
  }

  var statements: SQLStatements { tables.statements }
  var streams: StreamTable { StreamTable(statements: statements) }
  var records: RecordTables { tables.records }

  /// No report gets an id up to this one any more.
  func skipReports(upTo id: Int64) throws {
    guard id >= nextReport else { return }
    nextReport = id + 1
    try statements.set("newest_report", id)
  }

  // MARK: Reports

  /// Adds a packet's reports as one block.
  func add(_ packet: OpenedPacket, chainIsBroken: Bool, receivedTime: Int64, day: Int64) throws {
    guard !packet.rows.isEmpty else { return }
    if day != notedDay { try statements.run("INSERT OR IGNORE INTO days VALUES ($1, $2)", [day, nextReport]) }
    notedDay = day
    let context = packet.delivery.context
    let run = ReportBlock.Run(
      first: nextReport, count: packet.rows.count, stream: StreamID(context), packet: context.packetID,
      received: receivedTime, chainIsBroken: chainIsBroken, correction: packet.delivery.clockCorrection,
      payloadBytes: packet.payloads.map(\.count))
    let row = try SQLiteError.packing { () throws(PacketError) in
      try ReportBlock(runs: [run], text: packet.text).row(packet.reports, packer)
    }
    try tables.insert(row.head, row.body)
    try tables.insert(payloads: packet.payloads.enumerated().map { (run.first + Int64($0), $1) })
    nextReport += Int64(run.count)
  }

  /// The last row of `packets` that was taken over from another database, without the reports.
  static let adoptedFact = "adopted_packet"

  /// A block of another database, under the ids that it has there. Packets that were stored here are left out: their ids
  /// could not be read there. - Returns: how many reports it brings; 0, too, if there are reports of these ids.
  func adopt(_ found: DatabaseSource.Found) throws -> Int {
    guard try tables.heads(found.head.ids, isNewestFirst: false, limit: 1).isEmpty else { return 0 }
    let adopted = try statements.fact(Self.adoptedFact) ?? .max
    var (stored, unknown) = (Set<Int64>(), [(PacketID, of: Int64, number: Int64)]())
    for run in found.block.block.runs {
      let stream = try streams.findOrAdd(run.stream)
      if let row = try streams.row(of: run.packet, of: stream.number) {
        if row > adopted { stored.formUnion(run.ids) }
      } else {
        unknown.append((run.packet, stream.number, stream.packets))
      }
    }
    var builder = BlockBuilder()
    builder.add(found.block, without: stored)
    let kept = try stored.isEmpty ? (head: found.head, body: found.body) : builder.block?.row()
    guard let kept else { return 0 }
    try tables.insert(kept.head, kept.body)
    try tables.insert(payloads: found.payloads.filter { !stored.contains($0.report) })
    for (packet, stream, number) in unknown { try streams.add(packet, of: stream, number: number, day: 0) }
    return kept.head.rows
  }

  // MARK: Merging

  static let mergedFact = "merged_report"

  /// Up to which id blocks are merged, and the ids at which days of service begin, ascending.
  func mergeState() throws -> (last: Int64, days: [Int64]) {
    let starts = try statements.texts("SELECT first_report FROM days ORDER BY first_report")
    return (try statements.fact(Self.mergedFact) ?? 0, starts.compactMap { Int64($0[0]) })
  }

  /// Puts one block in the place of others, in one transaction, if they are still as they were read.
  func take(_ merge: BlockMerge.Result) throws {
    try session.perform(isWriting: true) { statements in
      switch merge {
      case .wait: break
      case .stays(let id): try statements.set(Self.mergedFact, id)
      case .merged(let former, let head, let body):
        guard try tables.heads(head.ids, isNewestFirst: false, limit: former.count + 1) == former else { return }
        try tables.replace(by: head, body)
        try statements.set(Self.mergedFact, head.last)
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
  func adopt(_ known: DatabaseSource.KnownStream) throws {
    try statements.run(
      """
      UPDATE streams SET packets = max(packets, $1), last_packet = coalesce(last_packet, $2), ledger = coalesce(ledger, $3),
        forgotten_time = coalesce(max(forgotten_time, $4), forgotten_time, $4) WHERE id = $5
      """,
      [
        known.packets, known.lastPacket, known.ledger, known.forgottenTime, try streams.findOrAdd(known.name).number,
      ])
  }

  /// How many of the packets that streams count have no id here. A stream's packets are numbered without gaps, and the
  /// oldest are forgotten first.
  func missingIDs() throws -> Int64 {
    try statements.integer(
      """
      SELECT sum(max(0, s.packets - coalesce(p.first, 1) + 1 - coalesce(p.ids, 0)))
      FROM streams s LEFT JOIN (SELECT stream, min(number) AS first, count(*) AS ids FROM packets GROUP BY stream) p
        ON p.stream = s.id
      """) ?? 0
  }

  // MARK: A group of packets within its transaction

  /// Stores the packets that are new, and says what became of each.
  /// - Parameters:
  ///   - receivedTime: milliseconds since 1970.
  ///   - day: on which day of service they came.
  ///   - idsSince, store: as of `PacketGroup`.
  func take(
    _ submissions: [PacketSubmission], _ quotas: Quotas, receivedTime: Int64, day: Int64, idsSince: Int64,
    in store: StoreMark
  ) throws -> [PacketOutcome] {
    var group = PacketGroup(
      submissions, try streams.known(to: submissions), try quotas.room(for: submissions, statements),
      idsSince: idsSince, in: store)
    var numbers = group.streams.compactMapValues(\.number)
    for (packet, name, chainIsBroken) in group.stored {
      let stream = if let known = numbers[name] { known } else { try streams.insert(name, receivedTime: receivedTime) }
      numbers[name] = stream
      let number = try streams.note(packet.delivery, of: stream, receivedTime: receivedTime)
      try streams.add(packet.delivery.context.packetID, of: stream, number: number, day: day)
      guard packet.records == nil else { continue }
      try add(packet, chainIsBroken: chainIsBroken, receivedTime: receivedTime, day: day)
    }
    try group.carryOut(records, numbers, now: receivedTime)
    try quotas.take(group.room, statements)
    return group.outcomes
  }
}
