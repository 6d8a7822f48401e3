import Glibc
import PrismBase
import PrismProtocol

/// Opens the database in whatever state it is: makes one where there is none, brings an older one to the newest version,
/// and sets a damaged one aside for a new one that takes over what can be read of it.
struct StoreOpening {
  struct Opened {
    var database: StoreDatabase
    var state: StoreState
    var epoch: String
    var salvage: SalvageProgress
  }

  let options: StoreOptions
  let board: HealthBoard
  /// What the process knows, where it had the database open before.
  var remembered: Adoption.Remembered?
  /// No power was lost since the last run: a log that isn't whole is damaged.
  var isSameBoot = true
  private var contentsPath: String { options.databasePath + TableOfContents.suffix }
  private var aside: SetAside { SetAside(options) }

  init(_ options: StoreOptions, _ board: HealthBoard) { (self.options, self.board) = (options, board) }

  /// - Throws: only what is not the file's fault, and `newer`.
  func open() throws(SQLiteError) -> Opened {
    if let name = aside.pending() {
      aside.finish(name)
      return try openWithAdoption(name)
    }
    do throws(SQLiteError) {
      if isLogDamaged { throw .damagedLog }
      return try openFile()
    } catch {
      guard isFilesFault(error) else { throw error }
      return try replace(for: error.description)
    }
  }

  /// Sets the database aside, whatever it is, and begins a new one.
  func replace(for cause: String) throws(SQLiteError) -> Opened {
    let source = DamagedDatabase(path: options.databasePath)
    let kind: SetAside.Cause = source?.isOurs == false ? .foreign : .corrupt
    let name = aside.begin(kind, unixMilliseconds: options.time.unixMilliseconds)
    aside.finish(name)
    options.log.error(
      kind == .foreign
        ? "prism.db is not a database of prism's: it is set aside and a new one begun; look at who put it there"
        : "the database is damaged: it is set aside, and what can be read of it is brought into a new one",
      ["cause": cause, "set_aside": options.folder + "/" + name])
    board.note {
      $0.setAside += 1
      $0.cause = cause
    }
    return try openWithAdoption(name)
  }

  /// A new database without anything of the one before it, which stays beside it.
  func abandon() throws(SQLiteError) -> Opened {
    let name = aside.pending() ?? aside.begin(.corrupt, unixMilliseconds: options.time.unixMilliseconds)
    aside.finish(name)
    aside.done()
    board.note { $0.setAside += 1 }
    return try openFile()
  }

  /// Starts die again and again before they serve: the database is the likeliest reason.
  func breakLoop(_ past: RunMark.Past, _ runMark: RunMark) throws(SQLiteError) -> Opened {
    runMark.gaveUp(unixMilliseconds: options.time.unixMilliseconds)
    let cause = "\(past.deaths) starts died before they were ready within a minute"
    guard past.hasGivenUp else { return try replace(for: cause) }
    options.log.error(
      "they still do: nothing is brought over any more; look at the files with `sqlite3 FILE .recover`",
      ["cause": cause, "folder": options.folder])
    return try abandon()
  }

  // MARK: A sound file

  private func openFile() throws(SQLiteError) -> Opened {
    let before = TableOfContents(path: contentsPath)
    if before != nil && remembered == nil && aside.pending() == nil { try expectFile() }
    let database = try StoreDatabase(options)
    try SchemaVersion.check(database.connection)
    try Migration.run(on: database.connection)
    if let remembered, try database.connection.firstInt("SELECT count(*) FROM namespaces") == 0 {
      try Epoch.write(remembered.epoch, database.connection)
    }
    let epoch = try Epoch.read(database.connection)
    var state = try StoreState(database.connection)
    // What this process answered already is never given out again.
    state.nextSequence = max(state.nextSequence, remembered?.nextSequence ?? 1)
    state.nextContext = max(state.nextContext, remembered?.nextContext ?? 1)
    database.watchHome()
    let contents = try TableOfContents(database.connection, state, epoch: epoch)
    if before != contents { contents.write(to: contentsPath) }
    return Opened(
      database: database, state: state, epoch: epoch, salvage: try SalvageProgress(database.connection))
  }

  /// There was a database. - Throws: `nonsense` where it was emptied.
  private func expectFile() throws(SQLiteError) {
    var facts = stat()
    guard stat(options.databasePath, &facts) == 0 else {
      return options.log.warning("the database was removed while prismd did not run; a new one is begun")
    }
    // Its log is whole, maybe; SQLite deletes the log of an empty database without a word.
    if facts.st_size == 0 { throw .nonsense }
  }

  /// With full durability only the last commit can be torn, and only by a loss of power.
  private var isLogDamaged: Bool {
    guard options.durability == .full, let log = WriteAheadLog(path: options.databasePath + "-wal") else {
      return false
    }
    guard log.commitsBehindDamage <= (isSameBoot ? 0 : 1) else { return true }
    if log.hasDamagedFrame && remembered == nil {
      options.log.warning(
        "the last commit in the log is not whole and is left out: it was being written when the last run ended, or, if it "
          + "had been answered, it was damaged since")
      board.note { $0.cause = "the last commit in the log was not whole" }
    }
    return false
  }

  /// What a sound file never makes SQLite say.
  private func isFilesFault(_ error: SQLiteError) -> Bool {
    if error.newerVersion != nil || error.isEnvironment { return false }
    return error.primaryCode != 8 || access(options.databasePath, W_OK) == 0 && access(options.folder, W_OK) == 0
  }

  // MARK: A damaged one

  private func openWithAdoption(_ name: String) throws(SQLiteError) -> Opened {
    _ = try openFile()
    do throws(SQLiteError) {
      let outcome = try adopt(name)
      aside.done()
      tell(outcome, name)
    } catch {
      guard isFilesFault(error) else { throw error }
      aside.done()
      options.log.error(
        "what was set aside can't be brought over; look at it with `sqlite3 FILE .recover`",
        ["file": options.folder + "/" + name, "cause": error.description])
    }
    let opened = try openFile()
    for old in aside.prune(keeping: opened.salvage.files.map(\.name)) {
      options.log.warning("an old damaged database is deleted to make room", ["file": options.folder + "/" + old])
    }
    return opened
  }

  private func adopt(_ name: String) throws(SQLiteError) -> Adoption.Outcome {
    let connection = try StoreDatabase(options).connection
    // It knows namespaces: killed after its adoption, before the mark of it was removed.
    guard try connection.firstInt("SELECT count(*) FROM namespaces") == 0,
      let source = DamagedDatabase(path: options.folder + "/" + name), source.isOurs
    else { return Adoption.Outcome() }
    return try Adoption.run(source, name: name, into: connection, remembered: remembered)
  }

  private func tell(_ outcome: Adoption.Outcome, _ name: String) {
    board.note {
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
