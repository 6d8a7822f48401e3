import PrismBase
import PrismConfig
import PrismProtocol
import PrismSQLite

/// The maintenance that is due in a database, one slice a call. Between two slices packets are taken.
struct SQLiteMaintenance {
  /// Days are those on which the collector ran.
  struct Policy: Sendable {
    var today: Int64
    /// Ids of packets of earlier days are forgotten, but for the last `idsKept` of a stream.
    var idsBefore: Int64
    var idsKept: Int64
    /// Days of reports that are kept; nil: no reports are deleted.
    var reportDays: Int64?
    var servedSeconds: Int64
    /// Reports that these outputs have not taken stay; with more bytes `onLag` decides.
    var outputs: [String] = []
    var outputLagBytes: Int64 = .max
    var onLag = LagPolicy.hold
  }

  private static let idsMax = 1000
  /// Blocks of one transaction, and payloads.
  private static let (blocksMax, payloadsMax) = (64, 500)

  private var sources: [String: DatabaseSource] = [:]
  /// Packet ids up to here were looked at on this pass.
  private var cursor: Int64 = 0
  private var lastPass: Int64 = -1
  /// Reports past their days wait for an output, and have too many bytes.
  private(set) var isOverLag = false
  /// Of the days that are being deleted: when the first report was received, and how many are deleted.
  private var deleted: (since: Int64?, reports: Int) = (nil, 0)
  /// Reports that were deleted though an output had not taken them.
  private(set) var skipped: [String: Int] = [:]
  /// No blocks are merged before, in uptime.
  var mergingRestsUntil: Duration = .zero

  /// - Returns: whether more is due.
  mutating func slice(
    of database: PacketDatabase, _ policy: Policy, _ files: DatabaseFiles, _ options: SQLitePacketStore.Options
  ) throws(SQLiteError) -> Bool {
    if try importSlice(into: database, files, options) { return true }
    if try forgetIDs(in: database, policy) { return true }
    guard let days = policy.reportDays else { return false }
    return try deleteReports(in: database, before: try Self.due(in: database, days, policy) + 1, policy, options.log)
  }

  // MARK: Packet ids

  /// One pass a day over the ids of earlier days.
  private mutating func forgetIDs(in database: PacketDatabase, _ policy: Policy) throws(SQLiteError) -> Bool {
    guard policy.today > lastPass else { return false }
    let (pass, cursor) = (policy, self.cursor)
    var seen: (count: Int, last: Int64, isOver: Bool) = (0, cursor, false)
    try database.connection.transaction { () throws(SQLiteError) in
      let forget = try database.connection.prepare("DELETE FROM packets WHERE id = :id")
      let forgetAnswer = try database.connection.prepare(
        "DELETE FROM record_answers WHERE (stream, packet) = (SELECT stream, packet FROM packets WHERE id = :id)")
      let note = try database.connection.prepare(
        "UPDATE streams SET forgotten_time = max(coalesce(forgotten_time, 0), :time) WHERE id = :id")
      for known in try Self.ids(in: database, after: cursor) {
        seen = (seen.count + 1, known.id, known.day >= pass.idsBefore)
        if seen.isOver { break }
        guard known.number <= known.streamPackets - pass.idsKept else { continue }
        forgetAnswer.bind(":id", known.id)
        try forgetAnswer.run()
        forget.bind(":id", known.id)
        try forget.run()
        guard known.time >= PacketID.firstSetTime else {
          let fact = StreamTable.unsetFact(of: known.stream)
          try database.set(fact, max(known.time, try database.fact(fact) ?? 0))
          continue
        }
        note.bind(":id", known.stream)
        note.bind(":time", known.time)
        try note.run()
      }
    }
    self.cursor = seen.last
    if seen.count == Self.idsMax && !seen.isOver { return true }
    (self.cursor, lastPass) = (0, policy.today)
    return false
  }

  private struct KnownID {
    enum Column: String, SQLiteColumn {
      case id = "p.id"
      case stream = "p.stream"
      case number = "p.number"
      case day = "p.day"
      case streamPackets = "s.packets"
      case packet = "p.packet"
    }

    var id: Int64, stream: Int64, number: Int64, day: Int64, streamPackets: Int64, time: Int64
  }

  private static func ids(in database: PacketDatabase, after cursor: Int64) throws(SQLiteError) -> [KnownID] {
    let statement = try database.connection.prepare(
      """
      SELECT \(KnownID.Column.list)
      FROM (SELECT * FROM packets WHERE id > :cursor ORDER BY id LIMIT \(idsMax)) p JOIN streams s ON s.id = p.stream ORDER BY p.id
      """)
    statement.bind(":cursor", cursor)
    var found: [KnownID] = []
    try statement.forEachRow(of: KnownID.Column.self) { row in
      found.append(
        KnownID(
          id: row.int64(.id), stream: row.int64(.stream), number: row.int64(.number), day: row.int64(.day),
          streamPackets: row.int64(.streamPackets), time: PacketID(bytes: row.bytes(.packet))?.unixMilliseconds ?? 0))
    }
    return found
  }

  // MARK: Reports

  /// The first report that an output still waits for, and about how many bytes all up to `end` have; nil: no output waits.
  private static func waiting(
    in database: PacketDatabase, _ policy: Policy, before end: Int64
  ) throws(SQLiteError) -> (first: Int64, bytes: Int64)? {
    var first: Int64?
    for output in policy.outputs {
      let next = (try database.fact("output_\(output)") ?? 0) + 1
      first = min(first ?? next, next)
    }
    guard let first, first < end else { return nil }
    let bytes = try database.connection.firstInt(
      """
      SELECT (SELECT coalesce(sum(length(body) + 200), 0) FROM blocks WHERE last >= \(first) AND id < \(end))
        + (SELECT coalesce(sum(length(payload) + 20), 0) FROM payloads WHERE report >= \(first) AND report < \(end))
      """)
    return (first, bytes ?? 0)
  }

  /// The last day that may be deleted.
  private static func due(
    in database: PacketDatabase, _ keptDays: Int64, _ policy: Policy
  ) throws(SQLiteError) -> Int64 {
    var days: [Int64] = []
    let select = "SELECT day FROM days WHERE day < \(policy.today - keptDays) ORDER BY day"
    try database.connection.prepare(select).forEachRow(of: DayColumn.self) { days.append($0.int64(.day)) }
    let before = try DayAllowance("reports") { (name) throws(SQLiteError) in try database.fact(name) }
    var allowance = before
    allowance.advance(over: days, keptDays: keptDays, served: policy.servedSeconds)
    if allowance != before {
      try database.connection.transaction { () throws(SQLiteError) in
        for fact in allowance.facts("reports") { try database.set(fact.name, fact.value) }
      }
    }
    return allowance.due
  }

  private mutating func logDeleted(_ log: Logger) {
    let since = deleted.since.map { String(RFC3339.text(unixMilliseconds: $0).prefix(10)) } ?? "-"
    log.info("a day past retentionDay is dropped", ["day": since, "rows": String(deleted.reports)])
    deleted = (nil, 0)
  }

  private enum DayColumn: String, SQLiteColumn { case day }

  private mutating func deleteReports(
    in database: PacketDatabase, before day: Int64, _ policy: Policy, _ log: Logger
  ) throws(SQLiteError) -> Bool {
    isOverLag = false
    guard try database.connection.firstInt("SELECT 1 FROM days WHERE day < \(day)") != nil else { return false }
    let first = try database.connection.firstInt(
      "SELECT first_report FROM days WHERE day >= \(day) ORDER BY day LIMIT 1")
    let due = first ?? database.nextReport
    let waiting = try Self.waiting(in: database, policy, before: due)
    let isTooMuch = waiting.map { $0.bytes > policy.outputLagBytes } ?? false
    isOverLag = isTooMuch && policy.onLag != .skip
    let held = isTooMuch && policy.onLag == .skip ? nil : waiting?.first
    let end = held ?? due
    if isTooMuch, held == nil {
      if skipped.isEmpty { log.error(LagPolicy.skipped, ["before_id": String(end)]) }
      try countSkipped(in: database, policy, before: end)
    }
    if deleted.reports == 0 {
      deleted.since = try database.connection.firstInt("SELECT received_first FROM blocks ORDER BY id LIMIT 1")
    }
    var isOver = false
    let isMoreDue = try database.connection.transaction { () throws(SQLiteError) in
      let connection = database.connection
      deleted.reports += Int(try connection.firstInt("SELECT sum(rows) FROM (\(Self.oldest(before: end)))") ?? 0)
      try connection.execute("DELETE FROM blocks WHERE id IN (SELECT id FROM (\(Self.oldest(before: end))))")
      if connection.changes == Self.blocksMax { return true }
      let first = try connection.firstInt("SELECT min(id) FROM blocks") ?? end
      try connection.execute(
        """
        DELETE FROM payloads WHERE report IN
          (SELECT report FROM payloads WHERE report < \(min(first, end)) ORDER BY report LIMIT \(Self.payloadsMax))
        """)
      if connection.changes == Self.payloadsMax { return true }
      if held != nil { return false }  // the rest of these days waits
      try database.skipReports(upTo: end - 1)
      try connection.execute("DELETE FROM days WHERE day < \(day)")
      isOver = true
      return false
    }
    if isOver { logDeleted(log) }
    return isMoreDue
  }

  /// The next blocks that are deleted.
  private static func oldest(before end: Int64) -> String {
    "SELECT * FROM blocks WHERE last < \(end) ORDER BY id LIMIT \(blocksMax)"
  }

  /// Of the reports that are deleted next.
  private mutating func countSkipped(
    in database: PacketDatabase, _ policy: Policy, before end: Int64
  ) throws(SQLiteError) {
    for output in policy.outputs {
      let cursor = try database.fact("output_\(output)") ?? 0
      let count = try database.connection.firstInt(
        "SELECT sum(min(rows, max(0, last - \(cursor)))) FROM (\(Self.oldest(before: end)))")
      skipped[output, default: 0] += Int(count ?? 0)
    }
  }

  // MARK: What was set aside

  private mutating func importSlice(
    into database: PacketDatabase, _ files: DatabaseFiles, _ options: SQLitePacketStore.Options
  ) throws(SQLiteError) -> Bool {
    guard
      let name = try database.connection.firstText("SELECT file FROM imports WHERE is_done = 0 ORDER BY file LIMIT 1")
    else { return false }
    guard let source = source(name, files, options) else {
      try database.connection.execute("UPDATE imports SET is_done = 1 WHERE file = '\(name)'")
      return true
    }
    let cursor = try database.connection.firstInt("SELECT cursor FROM imports WHERE file = '\(name)'") ?? 0
    let slice = source.blocks(after: cursor)
    try database.connection.transaction { () throws(SQLiteError) in
      var saved = 0
      for found in slice.blocks { saved += try database.adopt(found) }
      try database.connection.execute(
        """
        UPDATE imports SET cursor = \(slice.cursor), saved = saved + \(saved), lost = lost + \(slice.lost),
          is_done = \(slice.isLast ? 1 : 0) WHERE file = '\(name)'
        """)
    }
    if slice.isLast { try finish(name, in: database, files, options) }
    return true
  }

  private mutating func source(
    _ name: String, _ files: DatabaseFiles, _ options: SQLitePacketStore.Options
  ) -> DatabaseSource? {
    if let source = sources[name] { return source }
    let source = try? DatabaseSource(path: files.path(of: name), vfs: options.vfs)
    sources[name] = source
    return source
  }

  private mutating func finish(
    _ name: String, in database: PacketDatabase, _ files: DatabaseFiles, _ options: SQLitePacketStore.Options
  ) throws(SQLiteError) {
    sources[name] = nil
    let count = { (column: String) throws(SQLiteError) in
      String(try database.connection.firstInt("SELECT \(column) FROM imports WHERE file = '\(name)'") ?? 0)
    }
    let (saved, lost) = (try count("saved"), try count("lost"))
    options.log.log(
      lost == "0" ? .info : .error,
      lost == "0"
        ? "the reports of the database that was set aside were brought over; delete the file"
        : "not all reports of the database that was set aside can be read; look at it with `sqlite3 FILE .recover`",
      ["file": files.path(of: name), "saved": saved, "lost": lost])
  }
}
