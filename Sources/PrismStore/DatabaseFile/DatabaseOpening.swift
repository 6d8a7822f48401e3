import Glibc
import PrismBase
import PrismRecovery
import PrismSQLite

/// Opens the database in any state that it is in. If there is no database, it makes one; an older one becomes one of
/// the newest version. A damaged one is set aside for a new one, which takes over the rows that can be read.
struct DatabaseOpening {
  struct Opened {
    var database: StoreDatabase
    var state: StoreState
    var epoch: Epoch
    /// As the boots before left it.
    var clock: StoreClock
  }

  let options: StoreOptions
  let health: HealthState
  /// The state that this process kept, if it had the database open before.
  var remembered: Adoption.Remembered?
  /// How the starts before ended. If this process had the database open before, no start died.
  var start = StartHistory.Start.again
  private var contentsPath: String { options.databasePath + TableOfContents.suffix }
  private var place: DatabasePlace { options.place }
  private var aside: SetAside { SetAside(options) }

  init(_ options: StoreOptions, _ health: HealthState) { (self.options, self.health) = (options, health) }

  /// - Throws: only what is not the file's fault, and `newer`.
  func open() throws(SQLiteError) -> Opened {
    try finishMoves()
    let opened = try openAsPlanned()
    for old in aside.prune() {
      options.log.warning(
        "an old database whose reports are all in the new one is deleted", ["file": place.path(of: old)])
    }
    let left = aside.noteLeftBehind(opened.state.salvage, health)
    if !left.isEmpty && remembered == nil {
      options.log.error(
        "databases that were set aside hold reports that are not brought over: look at them with "
          + "`sqlite3 FILE .recover`, then delete them",
        ["files": left.joined(separator: " "), "folder": options.folder])
    }
    return opened
  }

  private func openAsPlanned() throws(SQLiteError) -> Opened {
    if let name = aside.pending()?.name { return try openWithAdoption(name) }
    do throws(SQLiteError) {
      try mendLog()
      if start.aside != nil, place.bytes != nil {
        return try replace(
          .corrupt, .deaths, "\(start.deaths) starts died before they were ready",
          "the database may be why starts die: it is set aside, and what can be read of it is brought into a new one")
      }
      return try openFile()
    } catch {
      guard place.isFault(error) else { throw error }
      return try replace(for: error.description)
    }
  }

  /// Makes good what a start before was killed in, and puts a database back that was set aside for deaths which went on.
  private func finishMoves() throws(SQLiteError) {
    guard let intent = aside.pending() else { return }
    switch intent.direction {
    case .back: aside.finishBack(intent.name)
    case .deaths where start.aside == nil: try putBack(intent.name)
    case .deaths, .damaged: place.move(to: intent.name)
    }
  }

  /// While a move away is noted, nothing was stored in the new database.
  private func putBack(_ name: String) throws(SQLiteError) {
    place.move(to: name)
    guard try !holdsAnything else { return aside.done() }
    aside.putBack(name)
    options.log.warning(
      "the start without the database died, too: the database was not the cause, and is in its place again",
      ["file": options.databasePath])
  }

  /// The note of the move was removed before anything was stored, and may have come back with a loss of power.
  private var holdsAnything: Bool {
    get throws(SQLiteError) {
      guard place.bytes != nil else { return false }
      do throws(SQLiteError) {
        return try StoreDatabase(options).connection.firstInt("SELECT count(*) FROM namespaces") ?? 0 > 0
      } catch {
        if error.isEnvironment { throw error }
        return false  // it was not even set up
      }
    }
  }

  /// Sets the database aside, with any content, and begins a new one.
  func replace(for cause: String) throws(SQLiteError) -> Opened {
    let source = SalvageSource(path: options.databasePath)
    let isForeign = source?.database.isOfThisKind == false
    return try replace(
      isForeign ? .foreign : .corrupt, .damaged, cause,
      isForeign
        ? "prism.db is not a database of prism's: it is set aside and a new one begun; look at who put it there"
        : "the database is damaged: it is set aside, and what can be read of it is brought into a new one")
  }

  private func replace(
    _ kind: SetAside.Cause, _ direction: SetAside.Direction, _ cause: String, _ message: String
  ) throws(SQLiteError) -> Opened {
    let name = aside.begin(kind, direction, unixMilliseconds: options.time.unixMilliseconds)
    health.wasSetAside(cause)
    options.log.error(message, ["cause": cause, "set_aside": place.path(of: name)])
    return try openWithAdoption(name)
  }

  // MARK: A sound file

  private func openFile() throws(SQLiteError) -> Opened {
    let before = TableOfContents(path: contentsPath)
    if before != nil, remembered == nil, aside.pending() == nil, try !place.isThere() {
      options.log.warning("the database was removed while prismd did not run; a new one is begun")
    }
    let database = try StoreDatabase(options)
    try SchemaVersion.check(database.connection)
    try StoreSchema.migrate(database.connection)
    if let remembered, try database.connection.firstInt("SELECT count(*) FROM namespaces") == 0 {
      try Epoch.write(remembered.epoch.text, database.connection)
    }
    let epoch = try Epoch.read(database.connection)
    try MemoryDatabase(database.connection, options)?.attach()
    let state = try StoreState(database.connection)
    // Ids and sequences that this process gave in an answer are never given out again.
    state.nextSequence = max(state.nextSequence, remembered?.state.nextSequence ?? 1)
    state.nextContext = max(state.nextContext, remembered?.state.nextContext ?? 1)
    database.watchPath()
    let contents = try TableOfContents(database.connection, state.names, epoch: epoch)
    if before != contents { contents.write(to: contentsPath) }
    let clock = StoreClock(
      time: options.time, bootID: options.bootID,
      book: ClockBook(try database.connection.fact(ClockBook.factKey) ?? ""), held: try held(database.connection))
    return Opened(database: database, state: state, epoch: epoch, clock: clock)
  }

  /// Times of a version before 7 are of the wall clock: the clock begins behind them.
  private func held(_ connection: SQLiteConnection) throws(SQLiteError) -> HeldClock {
    let newest = try connection.firstInt(
      "SELECT max(ifnull((SELECT max(delivered_time) FROM client_ids), 0), ifnull((SELECT max(held_time) FROM settled), 0))"
    )
    return HeldClock(
      try connection.fact(HeldClock.factKey), bootID: options.bootID, uptime: options.time.uptime,
      begin: max(options.time.unixMilliseconds, newest ?? 0))
  }

  private func mendLog() throws(SQLiteError) {
    guard options.durability == .full, let log = try place.soundLog(isSameBoot: start.isSameBoot) else { return }
    if log.hasDamagedFrame && remembered == nil {
      options.log.warning(WriteAheadLog.tornWarning)
      health.note { $0.cause = "the last commit in the log was not whole" }
    }
    try place.cut(log)
  }

  // MARK: A damaged one

  private func openWithAdoption(_ name: String) throws(SQLiteError) -> Opened {
    _ = try openFile()
    do throws(SQLiteError) {
      tell(try adopt(name), name)
    } catch {
      guard place.isFault(error) else { throw error }
      options.log.error(
        "what was set aside can't be brought over; look at it with `sqlite3 FILE .recover`",
        ["file": place.path(of: name), "cause": error.description])
    }
    aside.done()
    return try openFile()
  }

  private func adopt(_ name: String) throws(SQLiteError) -> Adoption.Outcome {
    let connection = try StoreDatabase(options).connection
    // It knows namespaces: killed after its adoption, before the mark of it was removed.
    guard try connection.firstInt("SELECT count(*) FROM namespaces") == 0 else { return Adoption.Outcome() }
    var unknown = Adoption.Outcome()
    unknown.isLossUnknown = true
    if start.aside == .nothing { return unknown }
    guard let source = SalvageSource(path: place.path(of: name)), source.database.isOfThisKind else {
      return Adoption.Outcome()
    }
    if start.aside == .counts { return try Adoption.runForCounts(source, into: connection) }
    return try Adoption.run(source, name: name, into: connection, remembered: remembered)
  }

  private func tell(_ outcome: Adoption.Outcome, _ name: String) {
    health.note {
      $0.salvagedRows += outcome.savedRows
      $0.lostRows += outcome.lostRows
    }
    if outcome.lostRows > 0 {
      options.log.error(
        "reports in flight, or dead letters, were lost with the damaged database; they count as corrupt",
        ["rows": String(outcome.lostRows), "file": name])
    }
    if outcome.isLossUnknown {
      options.log.error(
        "part of the damaged database's counts can't be read: how many reports are lost with it is not known",
        ["file": name])
    }
  }
}
