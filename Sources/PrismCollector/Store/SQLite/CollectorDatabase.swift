import PrismBase
import PrismRecovery
import PrismSQL
import PrismSQLite

/// The database of a store: opened when it is used, opened again after a failure, replaced after damage.
struct CollectorDatabase {
  private static let refusalDuration = Duration.seconds(60)

  private let options: SQLitePacketStore.Options
  private let files: DatabaseFiles
  private let marker: StartMarker
  private var start = StartHistory.Start.again
  /// nil: it was closed after a failure, or for good.
  private var open: PacketDatabase?
  private var service = ServiceTime()
  /// Remembered for a database that must be replaced.
  private var newestReport: Int64 = 0
  /// For readers, and for a check in the background: one that began before a replacement says nothing of the new database.
  let source: SQLiteSource
  let merging: StoreReader
  /// The database is damaged and was replaced too often: until then, in uptime, no packet is taken.
  private(set) var refusal: (error: SQLiteError, until: Duration)?
  /// Until it is opened again.
  private var isRefused = false
  /// A database was opened in this process.
  private var hasBegun = false

  init(
    _ files: DatabaseFiles, _ options: SQLitePacketStore.Options, _ source: SQLiteSource, _ damaged: DamagedBlocks
  ) {
    (self.files, self.options, self.source, marker) = (files, options, source, files.marker)
    merging = StoreReader(source, label: "merging", damaged)
  }

  // MARK: Opening

  /// Opens the database at the start. A file that is not large is checked, because a look-up in a damaged index finds no
  /// fault, and no packet id. A large one is checked if the last run did not end in order.
  /// - Returns: whether it is so large that its check is left for later.
  /// - Throws: `damagedAgain`; then the next use tries again.
  mutating func openAtStart() throws(SQLiteError) -> Bool {
    start = marker.begin(unixMilliseconds: options.time.unixMilliseconds)
    let isCertain = start.hasOpened && start.wasClean
    do throws(SQLiteError) {
      let opened = try opening.open(isChecked: true)
      open = opened.database
      try begin(opened.database)
      return opened.isLeftUnchecked && !isCertain
    } catch {
      // A start that ends by itself, or goes on without the database, is not a crash.
      marker.stop()
      start.deaths = 0
      throw error
    }
  }

  mutating func opened() throws(SQLiteError) -> PacketDatabase {
    if let open { return open }
    if let refusal {
      guard options.time.uptime >= refusal.until else { throw refusal.error }
      (self.refusal, isRefused) = (nil, true)
    }
    // A database that was refused, or never opened, is checked first.
    let database = try opening.open(isChecked: isRefused || !hasBegun).database
    isRefused = false
    if !hasBegun { try begin(database) }
    open = database
    return database
  }

  /// The first database of this process.
  private mutating func begin(_ database: PacketDatabase) throws(SQLiteError) {
    files.protect()
    marker.logIsWhole()
    marker.ready()
    start = .again
    service = try SQLiteError.only { try ServiceTime(of: database, now: options.time.uptime) }
    newestReport = database.nextReport - 1
    hasBegun = true
  }

  private var opening: DatabaseOpening {
    DatabaseOpening(
      files: files, vfs: options.vfs, time: options.time, log: options.log,
      checkedAtOnceBytesMax: options.checkedAtOnceBytesMax, start: start, newestReport: newestReport,
      servedSeconds: servedSeconds)
  }

  // MARK: Using

  /// Seconds in which the collector ran.
  var servedSeconds: Int64 { service.seconds(now: options.time.uptime) }

  /// Notes the seconds, once a minute.
  mutating func noteServed(in database: PacketDatabase) throws {
    try service.note(servedSeconds, in: database)
  }

  /// After a commit that may have added reports.
  mutating func noteNewest(of database: PacketDatabase) { newestReport = database.nextReport - 1 }

  // MARK: Failing

  /// Whether the tables are gone from the file that is open: it was emptied, or its first page is damaged. Statements on a
  /// new connection fail then, and nothing else does.
  var hasLostTables: Bool {
    do throws(SQLiteError) {
      return try !DatabaseOpening.hasTables(files.path, options.vfs)
    } catch { return files.place.isDamage(error) }
  }

  /// Closes the file after a failure: opening it again shows whether a commit that failed holds.
  mutating func letGo() { open = nil }

  /// Refuses packets for a while. A refusal that holds already is not prolonged.
  mutating func refuse(_ error: SQLiteError) {
    refusal = refusal ?? (error, options.time.uptime + Self.refusalDuration)
  }

  /// Sets the database aside and begins another. - Throws: if that fails; then no packet is taken for a while.
  mutating func replace(for cause: String) throws(SQLiteError) {
    open = nil
    do throws(SQLiteError) { open = try opening.replace(for: cause) } catch {
      refusal = (error, options.time.uptime + Self.refusalDuration)
      throw error
    }
  }

  /// Notes the time of service, and closes the file for good.
  mutating func close() {
    guard let open else { return }
    try? open.statements.set(ServiceTime.fact, servedSeconds)
    self.open = nil
    marker.end()
  }
}

/// The time in which the collector ran, over all its runs. Ages count in it, so a wrong wall clock makes nothing older.
struct ServiceTime {
  static let fact = "served_seconds"

  /// At the opening of the database; the time since then comes on top. nil before.
  private var start: (seconds: Int64, at: Duration)?
  private var notedSeconds: Int64 = 0

  init() {}

  /// - Parameter now: of the `uptime` clock.
  init(of database: PacketDatabase, now: Duration) throws {
    let seconds = try database.statements.fact(Self.fact) ?? 0
    (start, notedSeconds) = ((seconds, now), seconds)
  }

  func seconds(now: Duration) -> Int64 {
    guard let start else { return 0 }
    return start.seconds + (now - start.at).components.seconds
  }

  /// Notes the time, once a minute.
  mutating func note(_ seconds: Int64, in database: PacketDatabase) throws {
    guard seconds - notedSeconds >= 60 else { return }
    try database.statements.set(Self.fact, seconds)
    notedSeconds = seconds
  }
}
