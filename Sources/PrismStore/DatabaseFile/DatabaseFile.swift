import PrismBase
import PrismProtocol
import PrismRecovery
import PrismSQLite

/// The store's file in the state folder: opened, opened again after a failure, brought back after others deleted it, and kept
/// from filling the disk. It runs the transactions.
final class DatabaseFile {
  private(set) var options: StoreOptions
  let health: HealthState
  let memory: StoreMemory
  let marker: StartMarker
  private var lock: StateLock
  /// nil: it could not be opened again after a failure, or is closed; the next call tries.
  private(set) var open: StoreDatabase?
  /// By queue: what the ledger counted as stored after the last commit. A database that says less was cut.
  private var committed: [QueueID: Int]
  /// While the database has no file.
  var backup: UnlinkedDatabaseBackup?
  var disk: DiskReserve
  var checkpoints = Checkpoints()
  let contention: ClientContention

  /// Takes the folder for this process, opens the database or makes a new one, and brings it to the newest version.
  /// - Returns: whether the last run ended in order.
  static func open(_ options: StoreOptions) throws(StoreError) -> (file: DatabaseFile, wasClean: Bool) {
    let lock = try StoreError.lock(options.folder)
    let (health, marker) = (HealthState(options.time), options.marker ?? StartMarker(folder: options.folder))
    Ballast(options).cutIfFull(options.log)
    do {
      var opening = DatabaseOpening(options, health)
      opening.start = marker.begin(unixMilliseconds: options.time.unixMilliseconds)
      let opened = try opening.open()
      marker.logIsWhole()
      let file = DatabaseFile(options, lock, health, marker, opened)
      try MemoryDatabase.settle(opened.database, file.memory)
      return (file, opening.start.wasClean)
    } catch {
      // A start that ends by itself is not a crash.
      marker.stop()
      if let newer = error.newerVersion {
        throw .newerVersion(path: options.databasePath, found: newer, known: StoreSchema.newestVersion)
      }
      throw error.isDiskFull ? .diskFull : .unavailable(error.description)
    }
  }

  private init(
    _ options: StoreOptions, _ lock: StateLock, _ health: HealthState, _ marker: StartMarker,
    _ opened: DatabaseOpening.Opened
  ) {
    (self.options, self.lock, self.health, self.marker) = (options, lock, health, marker)
    memory = StoreMemory(opened.epoch, opened.state, opened.clock, log: options.log)
    open = opened.database
    committed = opened.state.storedCounts
    (disk, contention) = (DiskReserve(options), ClientContention(options.time))
    noteAwaited()
    if disk.isFull { health.enter(.diskFull) }
  }

  deinit { marker.stop() }  // a program that ends in order before it serves did not crash

  // MARK: Open again, and closed

  /// Opens the database if it is not open. - Throws: what SQLite says; `changedNames` if it is another one than before: what
  /// the caller knows by the names' numbers is not valid any more.
  func opened() throws(SQLiteError) -> StoreDatabase {
    if let open { return open }
    let namespaces = memory.state.names.namespaces
    let database = try reopen(damagedBy: nil)
    guard memory.state.names.namespaces == namespaces else { throw .changedNames }
    return database
  }

  /// - Parameter damage: the file is damaged by this and is set aside; nil: only if it can't be opened.
  @discardableResult
  private func reopen(damagedBy damage: SQLiteError?) throws(SQLiteError) -> StoreDatabase {
    Ballast(options).cutIfFull(options.log)
    var opening = DatabaseOpening(options, health)
    opening.remembered = Adoption.Remembered(epoch: memory.epoch, state: memory.state)
    let opened = if let damage { try opening.replace(for: damage.description) } else { try opening.open() }
    guard opened.epoch == memory.epoch else { throw .otherDatabase }
    memory.reopened(opened.state)
    try countLost(opened.database)
    try MemoryDatabase.settle(opened.database, memory)
    open = opened.database
    marker.reopened()
    noteAwaited()
    committed = memory.state.storedCounts
    health.enter(disk.isFull ? .diskFull : workingState)
    options.log.faultEnded("store", "the database is open again")
    memory.announceAllTables()
    return opened.database
  }

  var workingState: StoreHealth.State { memory.state.salvage.files.isEmpty ? .working : .salvaging }

  /// Accounts for rows that were committed and that the file doesn't count: it was cut or put back while it was open.
  private func countLost(_ database: StoreDatabase) throws(SQLiteError) {
    let isSalvaging = !memory.state.salvage.files.isEmpty
    var lostInAll = 0
    for (queue, stored) in committed where memory.state.names.namespaces[queue.namespace] != nil {
      let lost = stored - memory.state[queue].ledger.stored
      guard lost > 0 else { continue }
      lostInAll += lost
      memory.state[queue].ledger.stored += lost
      memory.state[queue].ledger[isSalvaging ? .waiting : .corrupt] += lost
      if isSalvaging { memory.state.salvage.missing[queue, default: 0] += lost }
      memory.touched.insert(queue)
    }
    guard lostInAll > 0 else { return }
    try database.connection.transaction { () throws(SQLiteError) in
      try StoreTransaction(database: database, memory: memory).writeLedgers()
      try memory.state.salvage.write(database.connection)
    }
    if isSalvaging { return }
    health.note { $0.lostRows += lostInAll }
    options.log.error(
      "the database was cut while it was open: stored reports are lost, and count as corrupt",
      ["rows": String(lostInAll)])
  }

  /// Releases the database without a checkpoint, and without touching any file.
  func detach() {
    open?.connection.keepLogOnClose()
    (open, backup) = (nil, nil)
  }

  /// Takes the state folder again if it was made again.
  func relock() throws(SQLiteError) {
    guard !lock.isInPlace else { return }
    do { lock = try StateLock(folder: options.folder) } catch { throw .inputOutput(error.description) }
  }

  /// Closes the database after a checkpoint. Later calls open it again.
  func close() {
    guard open != nil, restore() else { return }
    do {
      try writeDeliveries()
      try write { (transaction) throws(SQLiteError) in try MemoryNotes(transaction).write() }
    } catch {
      options.log.warning(
        "the last deliveries are not written: `trace` will not know them", ["error": error.description])
    }
    guard let database = open else { return }
    do {
      try database.log.checkpoint()
      marker.end()
    } catch {
      options.log.warning("the last checkpoint failed; the next start does it", ["error": error.description])
    }
    open = nil
  }

  /// A check found the file damaged: it is replaced, unless it just replaced another.
  func isFound(damagedBy fault: String) {
    if memory.state.salvage.files.isEmpty { recover(from: .corrupt(fault, sql: "quick_check")) }
  }

  func set(_ durability: StoreOptions.Durability) throws(StoreError) {
    guard durability != options.durability else { return }
    options.durability = durability
    close()  // opened again it is set up for the other one
    try read { (_) throws(SQLiteError) in }
  }

  // MARK: Transactions

  /// Runs all of `body` and writes the ledgers that it changed, or does nothing of it.
  /// - Throws: `diskFull`, `unavailable`; `uncertain` if the commit itself failed and may hold.
  func write<Result>(
    _ body: (StoreTransaction) throws(SQLiteError) -> Result
  ) throws(StoreError) -> Result {
    var isCommitting = false
    let deliveries = memory.deliveries
    memory.touched.removeAll(keepingCapacity: true)
    do {
      let database = try opened()
      database.keepsDelivered = disk.hasPlenty(now: options.time.uptime)
      let transaction = StoreTransaction(database: database, memory: memory)
      try database.statement(SQL.begin).run()
      let result = try body(transaction)
      try transaction.writeLedgers()
      try transaction.writeClock()
      try RecordAccess(transaction).writeTables()
      isCommitting = true
      try database.statement(SQL.commit).run()
      didCommit(database)
      return result
    } catch {
      memory.deliveries = deliveries
      memory.clock.forgetWritten()
      recover(from: error)
      if error.isDiskFull { throw .diskFull }
      // A full disk is noticed before the commit's mark is written; a failed write or sync may leave the mark behind.
      throw isCommitting ? .uncertain(error.description) : .unavailable(error.description)
    }
  }

  private func didCommit(_ database: StoreDatabase) {
    for queue in memory.touched where !queue.isInMemory { committed[queue] = memory.state[queue].ledger.stored }
    memory.announceChanges()
    if memory.hasNewNames { writeContents(database) }
    if database.log.bytes > logBytesMax(of: database) { checkpoints.request() }
  }

  private func writeContents(_ database: StoreDatabase) {
    memory.hasNewNames = false
    // If it fails, the next one to open the database writes it.
    let contents = try? TableOfContents(database.connection, memory.state.names, epoch: memory.epoch)
    contents?.write(to: options.databasePath + TableOfContents.suffix)
  }

  /// Runs `body`, which changes nothing in the database. - Throws: `unavailable`.
  func read<Result>(_ body: (StoreTransaction) throws(SQLiteError) -> Result) throws(StoreError) -> Result {
    do {
      return try body(StoreTransaction(database: opened(), memory: memory))
    } catch {
      recover(from: error)
      throw .unavailable(error.description)
    }
  }

  /// Reads again what the database says. After anything but a full disk the file is opened again, since the pages that a
  /// connection holds of a file that failed it can't be trusted. A damaged file is set aside at once, without a restart:
  /// clients keep their connections, and what was answered stays known.
  func recover(from error: SQLiteError) {
    options.log.fault("store", "the database failed", ["error": error.description], level: .error)
    memory.state.contexts = ContextCache()
    (memory.salvage.lostRows, memory.hasNewNames) = (0, false)
    health.failed(error.description, error.isDiskFull ? .diskFull : .failing)
    if error.isDiskFull { disk.cut(now: options.time.uptime) }
    do {
      if let open, error.isDiskFull || !open.isInPlace() {
        // Without a file, this connection is all there is.
        open.connection.rollBack()
        if error.isDiskFull { open.log.empty() }
        memory.state = try StoreState(open.connection)
        try MemoryDatabase.settle(open, memory)
      } else {
        let isOfMemory = MemoryDatabase.isRemoved(for: error, memory, open, options)
        detach()
        try reopen(damagedBy: options.place.isDamage(error) && !isOfMemory ? error : nil)
      }
    } catch {
      detach()
      health.failed(error.description, error.isDiskFull ? .diskFull : .failing)
    }
  }
}
