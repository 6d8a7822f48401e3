import PrismBase
import PrismSQL
import PrismSQLite
import PrismSalvage

/// Opens `collector.db` in any state that it is in. One that can't be used is set aside, and a new one begun. The new
/// one knows the packet ids of the old one before it takes a packet; the reports are brought over later, in slices.
struct DatabaseOpening {
  /// Damaged databases that are replaced within an hour.
  private static let replacedMax = 3
  private static let replacedWithinMilliseconds: Int64 = 3_600_000
  /// Each is one look-up in the index, before the first packet is taken.
  private static let comparedIDs = 10_000

  let files: DatabaseFiles
  let vfs: String?
  let time: any TimeSource
  let log: Logger
  /// A larger file is checked while packets are taken.
  let checkedAtOnceBytesMax: Int
  /// The state that this process kept of the database that it had open.
  var newestReport: Int64 = 0
  var servedSeconds: Int64 = 0

  /// - Parameter isChecked: the file's structure is checked first.
  /// - Throws: `damagedAgain`; what is not the file's fault.
  func open(isChecked: Bool) throws(SQLiteError) -> (database: PacketDatabase, isLeftUnchecked: Bool) {
    files.finishSettingAside()
    // The first run of all may end within its first commit: nothing was in it.
    if files.isEmptied && files.wasClean != nil { return (try replace(for: "the file is empty"), false) }
    if !files.isThere && files.wasClean != nil {
      log.warning("the collector's database was removed since the last run; a new one is begun", ["path": files.path])
    }
    if let fault = logFault(isFirst: isChecked) { return (try replace(for: fault), false) }
    let isLarge = files.bytes > checkedAtOnceBytesMax
    do throws(SQLiteError) {
      if files.isThere { try Self.hasTables(files.path, vfs) }
      if isChecked && files.isThere && !isLarge, let found = try check.run().first { throw SQLiteError.corrupt(found) }
      let database = try PacketDatabase(path: files.path, vfs: vfs)
      try database.connection.settleLog(path: files.path, pageBytes: PacketSchema.pageBytes)
      try SQLiteError.only { try adoptAside(into: database) }
      try Self.compareNewestIDs(database.connection)
      try Self.compareStreams(database.connection)
      return (database, isChecked && isLarge)
    } catch {
      // SQLITE_ERROR: the schema does not fit this program's statements.
      guard error.isDamage || error.isStatementError else { throw error }
      return (try replace(for: error.description), false)
    }
  }

  /// Reads the log before SQLite does, which ends at the first frame that is damaged and would leave out the commits
  /// behind it without a word. Each commit is synced before the next begins, so a loss of power tears the last one only.
  /// - Returns: the fault; nil: SQLite reads all of it that was answered.
  private func logFault(isFirst: Bool) -> String? {
    guard files.isThere, let read = WriteAheadLog(path: files.path + "-wal", pageBytes: PacketSchema.pageBytes) else {
      return nil
    }
    guard read.commitsBehindDamage > (files.isSameBoot ? 0 : 1) else {
      if read.hasDamagedFrame && isFirst {
        log.warning(
          "the last commit in the log is not whole and is left out: it was being written when the last run ended, or, if it "
            + "had been answered, it was damaged since")
      }
      return nil
    }
    return "its log is damaged before \(read.commitsBehindDamage) whole commits"
  }

  /// Sets the database aside and begins another. - Throws: `damagedAgain`: then nothing was done.
  func replace(for reason: String) throws(SQLiteError) -> PacketDatabase {
    let now = time.unixMilliseconds
    let lately = files.damagedTimes.count { abs(now - $0) < Self.replacedWithinMilliseconds }
    if lately >= Self.replacedMax { throw .damagedAgain(reason, times: lately + 1, folder: files.folder) }
    let name = files.setAside(unixMilliseconds: now)
    log.error(
      "the collector's database is damaged: it is set aside, and what can be read is brought over",
      ["cause": reason, "set_aside": files.path(of: name)])
    let database = try PacketDatabase(path: files.path, vfs: vfs)
    files.protect()
    try SQLiteError.only {
      try adoptAside(into: database)
      try database.skipReports(upTo: newestReport)
      if servedSeconds > 0 { try database.statements.set(ServiceTime.fact, servedSeconds) }
    }
    return database
  }

  /// - Returns: whether it has tables, which are of a published version up to this program's.
  /// - Throws: code −1 for another version; damage if the header has another version than the tables.
  @discardableResult
  static func hasTables(_ path: String, _ vfs: String?) throws(SQLiteError) -> Bool {
    let connection = try SQLiteConnection(.init(path: path, vfs: vfs))
    connection.keepLogOnClose()  // a database that is refused stays as it is
    let tables = "SELECT count(*) FROM sqlite_schema WHERE name IN"
    if try connection.firstInt("\(tables) ('blocks', 'reports', 'packets')") ?? 0 == 0 { return false }
    let (header, known) = (Int64(try connection.version()), PacketSchema.version)
    let isKnown = PacketSchema.firstVersion...known ~= header
    let hasFacts = try connection.firstInt("\(tables) ('facts')") == 1
    // The first build had no version at all.
    let version =
      hasFacts
      ? try connection.firstInt("SELECT value FROM facts WHERE name = 'version'") ?? (isKnown ? header : known) : header
    guard header == version, hasFacts || header == 0 else {
      throw .corrupt("the header has version \(header), the tables are of version \(version)")
    }
    if isKnown { return true }
    throw SQLiteError(
      code: -1,
      message: "\(path) is of version \(version), this prism-collector knows version \(known); "
        + (version > known
          ? "install the newer one again"
          : "it is of a build before the first published version, and nothing was changed in it: name an empty state folder")
    )
  }

  /// Compares the newest packet ids with their index: those that a sender may send again after a restart. SQLite's check does not,
  /// and a packet whose id is not found in the index is stored again. - Throws: damage, if they differ.
  private static func compareNewestIDs(_ connection: SQLiteConnection) throws(SQLiteError) {
    let differing = try connection.firstInt(
      """
      SELECT t.id FROM (SELECT id, stream, packet FROM packets NOT INDEXED ORDER BY id DESC LIMIT \(comparedIDs)) t
      LEFT JOIN packets i INDEXED BY packets_name ON i.stream = t.stream AND i.packet = t.packet
      WHERE i.id IS NOT t.id LIMIT 1
      """)
    if let differing { throw .corrupt("the id of packet \(differing) differs from its copy in the index packets_name") }
  }

  /// Compares the senders with their index: one that is not found in it would begin a new stream, which knows no packet.
  /// - Throws: damage, if they differ.
  private static func compareStreams(_ connection: SQLiteConnection) throws(SQLiteError) {
    let differing = try connection.firstInt(
      """
      SELECT t.id FROM streams t NOT INDEXED LEFT JOIN streams i INDEXED BY streams_name
        ON i.device = t.device AND i.namespace = t.namespace AND i.kind = t.kind
      WHERE i.id IS NOT t.id LIMIT 1
      """)
    if let differing {
      throw .corrupt("the name of stream \(differing) differs from its copy in the index streams_name")
    }
  }

  private var check: IntegrityCheck { IntegrityCheck(path: files.path, vfs: vfs) }

  // MARK: What was set aside

  /// Takes over the packet ids of databases that were set aside and that this one knows nothing of.
  private func adoptAside(into database: PacketDatabase) throws {
    for name in files.asideNames {
      let known = try database.connection.firstInt("SELECT count(*) FROM imports WHERE file = '\(name)'")
      if known == 0 { try adopt(name, into: database) }
    }
  }

  private func adopt(_ name: String, into database: PacketDatabase) throws {
    if let repair = LogRepair.run(database: files.path(of: name), pageBytes: PacketSchema.pageBytes) {
      log.warning(
        "the log of the database that was set aside is read over its damaged frames",
        [
          "file": name, "frames": String(repair.frames), "damaged": String(repair.damagedFrames),
          "left_out": String(repair.missingFrames),
        ])
    }
    let source: DatabaseSource
    do { source = try DatabaseSource(path: files.path(of: name)) } catch {
      log.error(
        "nothing can be read of the database that was set aside; packets that it had may be stored again",
        ["file": files.path(of: name), "cause": "\(error)"])
      return try note(name, isDone: true, in: database)
    }
    var unreadable: Int64 = 0
    try database.session.perform(isWriting: true) { _ in
      try Self.adopt(source, into: database, now: time.unixMilliseconds)
      unreadable = try database.missingIDs()
      try note(name, isDone: false, in: database)
    }
    let ids = try database.connection.firstInt("SELECT count(*) FROM packets") ?? 0
    log.log(
      unreadable == 0 ? .info : .error,
      unreadable == 0
        ? "the packet ids of a database that was set aside are known"
        : "packet ids of a database that was set aside can't be read: such a packet that is sent again before its reports are "
          + "brought over is stored again, and they are left out",
      ["file": name, "ids": String(ids), "unreadable": String(unreadable)])
  }

  private func note(_ name: String, isDone: Bool, in database: PacketDatabase) throws {
    try database.connection.execute("REPLACE INTO imports VALUES ('\(name)', 0, 0, 0, \(isDone ? 1 : 0))")
  }

  private static func adopt(
    _ source: DatabaseSource, into database: PacketDatabase, now: Int64
  ) throws {
    for known in source.streams.values { try database.adopt(known) }
    var failure: (any Error)?
    source.forEachPacket { stream, packet, number, day in
      guard failure == nil else { return }
      do {
        let found = try database.streams.findOrAdd(stream)
        try database.streams.add(packet, of: found.number, number: number, day: day)
      } catch { failure = error }
    }
    source.forEachRecord { row in
      guard failure == nil else { return }
      do { try database.records.adopt(row) } catch { failure = error }
    }
    if let failure { throw failure }
    try RecordTables.skipIDs(now: now, in: database.connection)
    if let store = source.store { try store.adopt(in: database.connection) }
    try database.connection.execute(
      """
      UPDATE streams SET packets = max(packets, (SELECT count(*) FROM packets WHERE stream = streams.id))
      """)
    let statements = database.statements
    try statements.set(PacketDatabase.adoptedFact, try statements.integer("SELECT max(id) FROM packets") ?? 0)
    // Where the last id can't be read, new reports get ids far behind it.
    try database.skipReports(upTo: source.newestReport ?? 1 << 40)
    let served = max(source.servedSeconds, try statements.fact(ServiceTime.fact) ?? 0)
    try statements.set(ServiceTime.fact, served)
  }
}

extension SQLiteError {
  /// The database was damaged too often to be replaced once more.
  static func damagedAgain(_ reason: String, times: Int, folder: String) -> SQLiteError {
    SQLiteError(
      code: -2,
      message:
        "the database is damaged for the \(times)th time within an hour (\(reason)): it is not replaced any more; "
        + "replace the disk, or move the databases that were set aside out of \(folder)")
  }
  var isDamagedAgain: Bool { code == -2 }

  /// The file is not what was written.
  var isDamage: Bool { isCorruption || isShortRead }
  /// In prism's own words where it is prism's error.
  var cause: String { code < 0 ? message : "SQLite \(code): \(message)" }
  /// A value is too large or of the wrong kind.
  var isRejection: Bool { (18...20).contains(primaryCode) }
}
