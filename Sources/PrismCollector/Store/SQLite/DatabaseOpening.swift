import PrismBase
import PrismRecovery
import PrismSQL
import PrismSQLite

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
  /// How the starts before ended. If this process had the database open before, no start died.
  let start: StartHistory.Start
  /// The state that this process kept of the database that it had open.
  var newestReport: Int64 = 0
  var servedSeconds: Int64 = 0

  /// - Parameter isChecked: the file's structure is checked first.
  /// - Throws: `damagedAgain`; what is not the file's fault.
  func open(isChecked: Bool) throws(SQLiteError) -> (database: PacketDatabase, isLeftUnchecked: Bool) {
    files.finishSettingAside()
    do throws(SQLiteError) {
      // The first run of all may end within its first commit: nothing was in it.
      if start.hasOpened, try !files.place.isThere() {
        log.warning("the collector's database was removed since the last run; a new one is begun", ["path": files.path])
      }
      let bytes = files.place.bytes
      let isLarge = bytes ?? 0 > checkedAtOnceBytesMax
      if bytes != nil {
        if start.aside != nil { throw .corrupt("\(start.deaths) starts died before they were ready") }
        let read = try files.place.soundLog(isSameBoot: start.isSameBoot)
        if read?.hasDamagedFrame == true && isChecked { log.warning(WriteAheadLog.tornWarning) }
        try Self.hasTables(files.path, vfs)
        let faults = isChecked && !isLarge ? try IntegrityCheck(path: files.path, vfs: vfs).run() : []
        if let found = faults.first { throw .corrupt(found) }
      }
      let database = try PacketDatabase(path: files.path, vfs: vfs)
      try files.place.settleLog(database.connection)
      try SQLiteError.only { try adoptAside(into: database) }
      try Self.compareIndexes(database.connection)
      return (database, isChecked && isLarge)
    } catch {
      guard files.place.isFault(error) else { throw error }
      return (try replace(for: error.description), false)
    }
  }

  /// Sets the database aside and begins another. - Throws: `damagedAgain`: then nothing was done.
  func replace(for reason: String) throws(SQLiteError) -> PacketDatabase {
    let now = time.unixMilliseconds
    let lately = files.asides.count { abs(now - $0.unixMilliseconds) < Self.replacedWithinMilliseconds }
    if lately >= Self.replacedMax { throw .damagedAgain(reason, times: lately + 1, folder: files.place.folder) }
    let name = files.place.freeName(DatabaseFiles.aside, unixMilliseconds: now)
    files.place.move(to: name)
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

  /// Compares with their indexes what SQLite's check does not. A packet whose id is not found there is stored again: the
  /// newest are those that a sender may send again after a restart. A sender who is not found begins a new stream, which
  /// knows no packet. - Throws: damage, if they differ.
  private static func compareIndexes(_ connection: SQLiteConnection) throws(SQLiteError) {
    let newest = "(SELECT id, stream, packet FROM packets NOT INDEXED ORDER BY id DESC LIMIT \(comparedIDs)) t"
    for (table, rows, columns) in [
      ("packets", newest, ["stream", "packet"]), ("streams", "streams t NOT INDEXED", ["device", "namespace", "kind"]),
    ] {
      let isEqual = columns.map { "i.\($0) = t.\($0)" }.joined(separator: " AND ")
      let copies = "\(table) i INDEXED BY \(table)_name ON \(isEqual)"
      let differing = try connection.firstInt(
        "SELECT t.id FROM \(rows) LEFT JOIN \(copies) WHERE i.id IS NOT t.id LIMIT 1")
      if let differing { throw .corrupt("row \(differing) of \(table) differs from its copy in \(table)_name") }
    }
  }

  // MARK: What was set aside

  /// Takes over the packet ids of databases that were set aside and that this one knows nothing of.
  private func adoptAside(into database: PacketDatabase) throws {
    for (name, _) in files.asides {
      let known = try database.connection.firstInt("SELECT count(*) FROM imports WHERE file = '\(name)'")
      if known == 0 { try adopt(name, into: database) }
    }
  }

  private func adopt(_ name: String, into database: PacketDatabase) throws {
    let source: DatabaseSource
    do throws(SQLiteError) {
      if ![nil, .everything].contains(start.aside) { throw .corrupt("starts died that read it") }
      repairLog(of: name)
      source = try DatabaseSource(path: files.path(of: name))
    } catch {
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

  private func repairLog(of name: String) {
    guard let repair = LogRepair.run(database: files.path(of: name), pageBytes: PacketSchema.pageBytes) else { return }
    log.warning(
      "the log of the database that was set aside is read over its damaged frames",
      [
        "file": name, "frames": String(repair.frames), "damaged": String(repair.damagedFrames),
        "left_out": String(repair.missingFrames),
      ])
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

  /// In prism's own words where it is prism's error.
  var cause: String { code < 0 ? message : "SQLite \(code): \(message)" }
  /// A value is too large or of the wrong kind.
  var isRejection: Bool { (18...20).contains(primaryCode) }
}
