import PrismBase
import PrismConfig
import PrismProtocol
import PrismSQL
import PrismSQLite

/// The maintenance that is due in a database, one slice a call. Between two slices packets are taken.
struct SQLiteMaintenance {
  private static let idsMax = 1000
  /// Blocks of one transaction, and payloads.
  private static let (blocksMax, payloadsMax) = (64, 500)

  private let files: DatabaseFiles
  private let options: SQLitePacketStore.Options
  /// Of the collector's service; days are those on which it ran.
  private var servedSeconds: Int64 = 0
  private var today: Int64 { servedSeconds / 86_400 }
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
  /// No blocks are merged or rewritten before, in uptime.
  var rewritingRestsUntil: Duration = .zero
  private(set) var retention: RuledRetention

  init(_ files: DatabaseFiles, _ options: SQLitePacketStore.Options) {
    (self.files, self.options, retention) = (files, options, RuledRetention(rules: options.retention.rules))
  }

  /// - Returns: whether more is due.
  mutating func slice(of database: PacketDatabase, servedSeconds: Int64) throws -> Bool {
    self.servedSeconds = servedSeconds
    if try importSlice(into: database) { return true }
    if try forgetIDs(in: database) { return true }
    guard let days = options.retention.days else { return false }
    return try deleteReports(in: database, before: try due(in: database, Int64(days)) + 1)
  }

  // MARK: Packet ids and days of devices

  /// One pass a day over the ids of earlier days, and the counts of devices that are over.
  private mutating func forgetIDs(in database: PacketDatabase) throws -> Bool {
    guard today > lastPass else { return false }
    var seen: (count: Int, last: Int64, isOver: Bool) = (0, cursor, false)
    let hasMoreDays = try database.session.perform(isWriting: true) { statements in
      let known = try statements.rows(
        of: IDColumn.self,
        """
        FROM (SELECT * FROM packets WHERE id > $1 ORDER BY id LIMIT \(Self.idsMax)) p JOIN streams s ON s.id = p.stream
        ORDER BY p.id
        """, [cursor])
      for row in known {
        seen = (seen.count + 1, row.int64(.id), row.int64(.day) >= today - options.idDays)
        if seen.isOver { break }
        guard row.int64(.number) <= row.int64(.streamPackets) - options.idsKept else { continue }
        try Self.forget(row, statements)
      }
      return try Quotas.forgetDays(served: servedSeconds, statements)
    }
    cursor = seen.last
    if hasMoreDays || seen.count == Self.idsMax && !seen.isOver { return true }
    (cursor, lastPass) = (0, today)
    return false
  }

  private enum IDColumn: String, SQLiteColumn {
    case id = "p.id"
    case stream = "p.stream"
    case number = "p.number"
    case day = "p.day"
    case streamPackets = "s.packets"
    case packet = "p.packet"
  }

  private static func forget(_ row: SQLRow<IDColumn>, _ statements: SQLStatements) throws {
    let (id, stream, packet) = (row.int64(.id), row.int64(.stream), row.bytes(.packet))
    try statements.run("DELETE FROM record_answers WHERE stream = $1 AND packet = $2", [stream, packet])
    try statements.run("DELETE FROM packets WHERE id = $1", [id])
    let time = PacketID(bytes: packet)?.unixMilliseconds ?? 0
    guard time < PacketID.firstSetTime else {
      try statements.run(
        "UPDATE streams SET forgotten_time = max(coalesce(forgotten_time, 0), $1) WHERE id = $2", [time, stream])
      return
    }
    let fact = StreamTable.unsetFact(of: stream)
    try statements.set(fact, max(time, try statements.fact(fact) ?? 0))
  }

  // MARK: Reports

  /// The next work of a rule; nil: nothing is due.
  func ruledWork(in database: PacketDatabase) throws -> RuledRetention.Work? {
    guard !retention.rules.isEmpty else { return nil }
    return try database.session.perform(isWriting: true) { statements in
      let days = RuledRetention.Days(
        numbers: try statements.texts("SELECT day FROM days ORDER BY day").compactMap { Int64($0[0]) }, today: today,
        firstReport: {
          try statements.integer("SELECT first_report FROM days WHERE day > $1 ORDER BY day LIMIT 1", [$0])
        }, served: servedSeconds, end: database.nextReport, held: try waiting(in: database),
        keptDays: options.retention.days)
      return try retention.work(in: days, statements)
    }
  }

  mutating func carryOut(_ found: RuledRetention.Found, in database: PacketDatabase) throws {
    let reports = try database.session.perform(isWriting: true) { try retention.carryOut(found, StoreTables($0)) }
    retention.note(reports, of: found, to: options.log)
  }

  /// The first report that an output still waits for; nil: there is no output.
  private func waiting(in database: PacketDatabase) throws -> Int64? {
    try options.retention.outputs.map { (try database.statements.fact("output_\($0)") ?? 0) + 1 }.min()
  }

  /// The first report that an output still waits for, and about how many bytes all up to `end` have; nil: no output waits.
  private func waiting(in database: PacketDatabase, before end: Int64) throws -> (first: Int64, bytes: Int64)? {
    guard let first = try waiting(in: database), first < end else { return nil }
    let bytes = try database.connection.firstInt(
      """
      SELECT (SELECT coalesce(sum(length(body) + 200), 0) FROM blocks WHERE last >= \(first) AND id < \(end))
        + (SELECT coalesce(sum(length(payload) + 20), 0) FROM payloads WHERE report >= \(first) AND report < \(end))
      """)
    return (first, bytes ?? 0)
  }

  /// The last day that may be deleted.
  private func due(in database: PacketDatabase, _ keptDays: Int64) throws -> Int64 {
    let days = try database.statements.texts(
      "SELECT day FROM days WHERE day < $1 ORDER BY day", [today - keptDays])
    return try database.session.perform(isWriting: true) {
      try $0.due(
        "reports", of: days.compactMap { Int64($0[0]) }, keptDays: keptDays, served: servedSeconds)
    }
  }

  private mutating func logDeleted() {
    let since = deleted.since.map { String(RFC3339.text(unixMilliseconds: $0).prefix(10)) } ?? "-"
    options.log.info("a day past retentionDay is dropped", ["day": since, "rows": String(deleted.reports)])
    deleted = (nil, 0)
  }

  private mutating func deleteReports(in database: PacketDatabase, before day: Int64) throws -> Bool {
    let policy = options.retention.onLag
    isOverLag = false
    guard try database.connection.firstInt("SELECT 1 FROM days WHERE day < \(day)") != nil else { return false }
    let first = try database.connection.firstInt(
      "SELECT first_report FROM days WHERE day >= \(day) ORDER BY day LIMIT 1")
    let due = first ?? database.nextReport
    let waiting = try waiting(in: database, before: due)
    let isTooMuch = waiting.map { $0.bytes > options.retention.outputLagBytes } ?? false
    isOverLag = isTooMuch && policy != .skip
    let held = isTooMuch && policy == .skip ? nil : waiting?.first
    let end = held ?? due
    if isTooMuch, held == nil {
      if skipped.isEmpty { options.log.error(LagPolicy.skipped, ["before_id": String(end)]) }
      try countSkipped(in: database, before: end)
    }
    if deleted.reports == 0 {
      deleted.since = try database.connection.firstInt("SELECT received_first FROM blocks ORDER BY id LIMIT 1")
    }
    var isOver = false
    let isMoreDue = try database.session.perform(isWriting: true) { _ in
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
    if isOver { logDeleted() }
    return isMoreDue
  }

  /// The next blocks that are deleted.
  private static func oldest(before end: Int64) -> String {
    "SELECT * FROM blocks WHERE last < \(end) ORDER BY id LIMIT \(blocksMax)"
  }

  /// Of the reports that are deleted next.
  private mutating func countSkipped(in database: PacketDatabase, before end: Int64) throws {
    for output in options.retention.outputs {
      let cursor = try database.statements.fact("output_\(output)") ?? 0
      let count = try database.connection.firstInt(
        "SELECT sum(min(rows, max(0, last - \(cursor)))) FROM (\(Self.oldest(before: end)))")
      skipped[output, default: 0] += Int(count ?? 0)
    }
  }

  // MARK: What was set aside

  private mutating func importSlice(into database: PacketDatabase) throws -> Bool {
    guard
      let name = try database.connection.firstText("SELECT file FROM imports WHERE is_done = 0 ORDER BY file LIMIT 1")
    else { return false }
    guard let source = source(name) else {
      try database.connection.execute("UPDATE imports SET is_done = 1 WHERE file = '\(name)'")
      return true
    }
    let cursor = try database.connection.firstInt("SELECT cursor FROM imports WHERE file = '\(name)'") ?? 0
    let slice = source.blocks(after: cursor)
    try database.session.perform(isWriting: true) { _ in
      var saved = 0
      for found in slice.blocks { saved += try database.adopt(found) }
      try database.connection.execute(
        """
        UPDATE imports SET cursor = \(slice.cursor), saved = saved + \(saved), lost = lost + \(slice.lost),
          is_done = \(slice.isLast ? 1 : 0) WHERE file = '\(name)'
        """)
    }
    if slice.isLast {
      try database.session.perform(isWriting: true) { try RuledRetention.forget($0) }
      try finish(name, in: database)
    }
    return true
  }

  private mutating func source(_ name: String) -> DatabaseSource? {
    if let source = sources[name] { return source }
    let source = try? DatabaseSource(path: files.path(of: name), vfs: options.vfs)
    sources[name] = source
    return source
  }

  private mutating func finish(_ name: String, in database: PacketDatabase) throws {
    sources[name] = nil
    let count = { (column: String) throws in
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
