import PrismBase
import PrismProtocol
import PrismSQLite

/// Opens `collector.db` in whatever state it is. One that can't be used is set aside, and a new one begun that knows its
/// packet ids before it takes a packet; its reports are brought over later, in slices.
struct DatabaseOpening {
  /// A larger file is checked while packets are taken.
  private static let checkedAtOnceBytesMax = 256 * 1_048_576

  let files: DatabaseFiles
  let vfs: String?
  let time: any TimeSource
  let log: Logger
  /// What the process knows of the database that it had open.
  var newestReport: Int64 = 0
  var servedSeconds: Int64 = 0

  /// - Parameter isChecked: the last run did not end in order: the file's structure is checked first.
  /// - Returns: nil in `leftUnchecked` where nothing is left to be checked.
  func open(isChecked: Bool) throws(SQLiteError) -> (database: PacketDatabase, isLeftUnchecked: Bool) {
    files.finishSettingAside()
    if files.isEmptied { return (try replace(.damaged, for: "the file is empty"), false) }
    if !files.isThere && files.wasClean != nil {
      log.warning("the collector's database was removed since the last run; a new one is begun", ["path": files.path])
    }
    let isLarge = files.bytes > Self.checkedAtOnceBytesMax
    do throws(SQLiteError) {
      if files.isThere, try Self.version(files.path, vfs) == 1 { return (try replace(.version1, for: ""), false) }
      if isChecked && files.isThere && !isLarge, let found = try check.run().first { throw SQLiteError.corrupt(found) }
      let database = try PacketDatabase(path: files.path, vfs: vfs)
      try adoptAside(into: database)
      return (database, isChecked && isLarge)
    } catch {
      // SQLITE_ERROR: the schema does not fit this program's statements.
      guard error.isDamage || error.isStatementError else { throw error }
      return (try replace(.damaged, for: error.description), false)
    }
  }

  /// Sets the database aside and begins another.
  func replace(_ cause: DatabaseFiles.Cause, for reason: String) throws(SQLiteError) -> PacketDatabase {
    let name = files.setAside(cause, unixMilliseconds: time.unixMilliseconds)
    let place: Logger.Fields = ["cause": reason, "set_aside": files.path(of: name)]
    if cause == .damaged {
      log.error("the collector's database is damaged: it is set aside, and what can be read is brought over", place)
    } else {
      log.info("the collector's database is of an older version: its reports are brought over", place)
    }
    let database = try PacketDatabase(path: files.path, vfs: vfs)
    files.protect()
    try adoptAside(into: database)
    try database.skipReports(upTo: newestReport)
    if servedSeconds > 0 { try database.set("served_seconds", servedSeconds) }
    return database
  }

  /// 1 and 2; 0: an empty database. - Throws: code −1 for a newer version.
  private static func version(_ path: String, _ vfs: String?) throws(SQLiteError) -> Int64 {
    let connection = try SQLiteConnection(.init(path: path, vfs: vfs))
    let version = Int64(try connection.version())
    if version > PacketSchema.version {
      throw SQLiteError(
        code: -1,
        message: "\(path) is of version \(version), this prism-collector knows versions up to \(PacketSchema.version); "
          + "install the newer one again")
    }
    let tables = try connection.firstInt("SELECT count(*) FROM sqlite_schema WHERE name IN ('reports', 'packets')") ?? 0
    if version == 0 { return tables > 0 ? 1 : 0 }
    return version
  }

  private var check: IntegrityCheck { IntegrityCheck(path: files.path, vfs: vfs) }

  // MARK: What was set aside

  /// Takes over the packet ids of databases that were set aside and that this one knows nothing of.
  private func adoptAside(into database: PacketDatabase) throws(SQLiteError) {
    for name in files.asideNames {
      let known = try database.connection.firstInt("SELECT count(*) FROM imports WHERE file = '\(name)'")
      if known == 0 { try adopt(name, into: database) }
    }
  }

  private func adopt(_ name: String, into database: PacketDatabase) throws(SQLiteError) {
    let source: DatabaseSource
    do { source = try DatabaseSource(path: files.path(of: name)) } catch {
      log.error(
        "nothing can be read of the database that was set aside; packets that it had may be stored again",
        ["file": files.path(of: name), "cause": error.description])
      return try note(name, isDone: true, in: database)
    }
    var ids = 0
    try database.connection.transaction { () throws(SQLiteError) in
      ids = try Self.adopt(source, into: database)
      try note(name, isDone: false, in: database)
    }
    log.info("the packet ids of a database that was set aside are known", ["file": name, "ids": String(ids)])
  }

  private func note(_ name: String, isDone: Bool, in database: PacketDatabase) throws(SQLiteError) {
    try database.connection.execute("REPLACE INTO imports VALUES ('\(name)', 0, 0, 0, \(isDone ? 1 : 0))")
  }

  private static func adopt(_ source: DatabaseSource, into database: PacketDatabase) throws(SQLiteError) -> Int {
    for known in source.streams.values { try database.adopt(known) }
    var (ids, failure) = (0, SQLiteError?.none)
    source.forEachPacket { stream, packet, number, day in
      guard failure == nil else { return }
      do throws(SQLiteError) {
        let found = try database.streamOrNew(stream)
        try database.add(packet, of: found.id, number: number, day: day)
        ids += 1
      } catch { failure = error }
    }
    if let failure { throw failure }
    try database.connection.execute(
      """
      UPDATE streams SET packets = max(packets, (SELECT count(*) FROM packets WHERE stream = streams.id))
      """)
    // Where the last id can't be read, new reports get ids far behind it.
    try database.skipReports(upTo: source.newestReport ?? 1 << 40)
    let served = max(source.servedSeconds, try database.fact("served_seconds") ?? 0)
    try database.set("served_seconds", served)
    return ids
  }
}

extension SQLiteError {
  /// The file is not what was written.
  var isDamage: Bool { isCorruption || isShortRead }
  /// A value is too large or of the wrong kind.
  var isRejection: Bool { (18...20).contains(primaryCode) }
}
