import Dispatch
import Glibc
import PrismBase
import PrismProtocol

/// The reports that were taken and have not left, on disk: `STATE/prism.db`, one SQLite database behind one serial queue
/// (docs/store.md).
///
/// Whatever was answered as stored survives a `kill -9`, and a power loss where `durability` is full. Each call that
/// changes something is one transaction; the ledger's identity holds after every one. After a failure of the disk the
/// file is opened anew, and what is known in memory is read from it again.
public actor ReportStore {
  nonisolated let executor: DispatchQueueExecutor
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// 20 hexadecimal digits that name this database: part of every report id that it makes, and of `Prism-Ledger`.
  public nonisolated let epoch: String
  nonisolated let epochBytes: [UInt8]

  private(set) var options: StoreOptions
  nonisolated let board: HealthBoard
  let marker: StartMarker
  private(set) var lock: StateLock
  /// nil: the file could not be opened again after a failure; the next call tries.
  var openDatabase: StoreDatabase?
  var state: StoreState
  /// By queue: what the ledger counted as stored after the last commit. A database that says less was cut.
  private var committed: [QueueID: Int] = [:]
  var unwrittenSettled: [SettledPacket] = []
  /// Queues whose ledger the open transaction changed.
  var touched: Set<QueueID> = []
  /// The open transaction gave a number to a name.
  var hasNewNames = false
  var contexts = ContextCache()
  var contextSweep: ContextSweep?
  /// By namespace: how many contexts are worth a sweep.
  var sweepAt: [Int: Int] = [:]
  /// The context that was to come next when no namespace had as many.
  var contextsLookedAt: Int64 = 0
  /// The last context that `forgetContexts` looked at.
  var contextsSeen: Int64 = 0
  /// A body together with its context, while it is being bound.
  var scratch: [UInt8] = []
  var hasLookedForOwnerlessIDs = false
  var isCheckpointScheduled = false
  private var checkpointedAt: Duration?
  /// Calls that reports came or left by; a change says that the store is in use.
  public internal(set) var uses = 0
  var policies: [NamespaceName: RetentionPolicy] = [:]
  let ballast: Ballast
  var space: SpaceGauge
  /// When to look again whether a full disk has space; nil: it is not full.
  var fullUntil: Duration?
  /// The last run did not end cleanly: the file is checked once the store serves.
  private var wantsCheck: Bool

  // While a damaged database is brought over
  var salvage: SalvageProgress
  var salvageSource: (name: String, database: DamagedDatabase)?
  /// Came over with their packets, and may have left since.
  var salvageClaimed: [QueueID: IDRuns] = [:]
  var salvageSettled: [QueueID: IDRuns]?
  var lostWithSalvage = 0
  /// While the database has no file.
  var rescue: Rescue?

  private init(
    _ options: StoreOptions, _ executor: DispatchQueueExecutor, _ lock: StateLock, _ board: HealthBoard,
    _ marker: StartMarker, _ opened: StoreOpening.Opened, wantsCheck: Bool
  ) {
    (self.options, self.executor, self.lock, self.board) = (options, executor, lock, board)
    (self.marker, self.wantsCheck) = (marker, wantsCheck)
    (epoch, epochBytes) = (opened.epoch, Array(opened.epoch.utf8))
    (state, salvage, openDatabase) = (opened.state, opened.salvage, opened.database)
    committed = opened.state.storedCounts
    ballast = Ballast(folder: options.folder, bytes: options.ballastBytes)
    space = SpaceGauge(options.folder)
    board.note { $0.awaited = opened.salvage.awaited(opened.state) }
    if !ballast.restore() {
      fullUntil = options.time.uptime
      board.enter(.diskFull)
    }
  }

  deinit {
    // A program that ends in order before it serves did not die.
    marker.stop()
  }

  /// Runs `body` in the store's next turn, for whom an answer by a task of his own comes too late.
  public nonisolated func inTurn(_ body: @escaping @Sendable (isolated ReportStore) -> Void) {
    executor.queue.async { self.assumeIsolated(body) }
  }

  /// How the store is, at once, whatever it is busy with.
  public nonisolated var health: StoreHealth { board.current }

  /// Takes the folder for this process, opens the database or makes a new one, and brings it to the newest version. A
  /// damaged one is set aside, and what is whole of it brought over: its packets at once, its waiting rows by `maintain`.
  /// - Throws: `locked`, `newerVersion`, `folder`, `diskFull`, `unavailable`.
  public static func open(_ options: StoreOptions) async throws(StoreError) -> ReportStore {
    let executor = DispatchQueueExecutor(label: "prism.store")
    let result: Result<ReportStore, StoreError> = await withCheckedContinuation { continuation in
      executor.queue.async {
        continuation.resume(
          returning: Result { () throws(StoreError) in try openHere(options, executor: executor) })
      }
    }
    return try result.get()
  }

  private static func openHere(_ options: StoreOptions, executor: DispatchQueueExecutor) throws(StoreError)
    -> ReportStore
  {
    let lock = try StateLock(folder: options.folder)
    let (board, marker) = (HealthBoard(options.time), options.marker ?? StartMarker(folder: options.folder))
    do {
      var opening = StoreOpening(options, board)
      opening.start = marker.begin(unixMilliseconds: options.time.unixMilliseconds)
      let opened = try opening.open()
      marker.logIsWhole()
      return ReportStore(options, executor, lock, board, marker, opened, wantsCheck: !opening.start.wasClean)
    } catch {
      // A start that ends by itself is no death.
      marker.stop()
      if let newer = error.newerVersion {
        throw .newerVersion(path: options.databasePath, found: newer, known: Migration.newestVersion)
      }
      throw error.isDiskFull ? .diskFull : .unavailable(error.description)
    }
  }

  /// The program serves: deaths from now on are not the database's doing. After a run that did not end cleanly the file
  /// is checked, while the store works.
  /// - Returns: ends with the check; nil: there is none.
  @discardableResult
  public func markReady() -> Task<Void, Never>? {
    marker.ready()
    guard wantsCheck else { return nil }
    wantsCheck = false
    return Task { await check() }
  }

  private func check() async {
    guard case .damaged(let found) = await IntegrityCheck.run(options), salvage.files.isEmpty else { return }
    recover(from: SQLiteError(code: SQLiteError.nonsense.code, message: found, sql: "quick_check"))
  }

  /// What an answer means from now on. - Throws: `unavailable` where the file can't be opened again.
  public func set(_ durability: StoreOptions.Durability) throws(StoreError) {
    guard durability != options.durability else { return }
    options.durability = durability
    close()  // opened again it is set up for the other one
    contexts = ContextCache()
    try reading { (_) throws(SQLiteError) in }
  }

  /// Lets go of the database after a checkpoint. Later calls open it again.
  public func close() {
    guard openDatabase != nil, bringHome() else { return }
    do { try writeSettled() } catch {
      options.log.warning("what became of the last packets is not written", ["error": error.description])
    }
    guard let database = openDatabase else { return }
    do {
      try database.checkpoint()
      marker.end()
    } catch {
      options.log.warning("the last checkpoint failed; the next start does it", ["error": error.description])
    }
    openDatabase = nil
  }
}

// MARK: The open file
extension ReportStore {
  /// - Throws: what SQLite says of opening it again; `changedNames` where it says other names than before: what the caller
  /// knows by their numbers is void.
  var database: StoreDatabase {
    get throws(SQLiteError) {
      if let openDatabase { return openDatabase }
      let names = state.namespaces
      let database = try reopen(damagedBy: nil)
      guard state.namespaces == names else { throw .changedNames }
      return database
    }
  }

  /// - Parameter damage: what the file was found to be damaged by; it is set aside. nil: only if it can't be opened.
  private func reopen(damagedBy damage: SQLiteError?) throws(SQLiteError) -> StoreDatabase {
    var opening = StoreOpening(options, board)
    opening.remembered = Adoption.Remembered(epoch: epoch, state)
    let opened = if let damage { try opening.replace(for: damage.description) } else { try opening.open() }
    guard opened.epoch == epoch else { throw .otherDatabase }
    (state, salvage) = (opened.state, opened.salvage)
    (salvageSource, salvageSettled) = (nil, nil)
    try countLost(opened.database)
    openDatabase = opened.database
    marker.reopened()
    noteAwaited()
    committed = state.storedCounts
    board.enter(fullUntil != nil ? .diskFull : salvage.files.isEmpty ? .working : .salvaging)
    options.log.faultEnded("store", "the database is open again")
    return opened.database
  }

  /// The file says less than what was committed: it was cut or put back under the daemon. What is gone is accounted for.
  private func countLost(_ database: StoreDatabase) throws(SQLiteError) {
    var lostInAll = 0
    for (queue, stored) in committed where state.namespaces[queue.namespace] != nil {
      let lost = stored - state[queue].ledger.stored
      guard lost > 0 else { continue }
      lostInAll += lost
      state[queue].ledger.stored += lost
      state[queue].ledger[salvage.files.isEmpty ? .corrupt : .waiting] += lost
      if !salvage.files.isEmpty { salvage.missing[queue, default: 0] += lost }
      touched.insert(queue)
    }
    guard lostInAll > 0 else { return }
    try database.connection.transaction { () throws(SQLiteError) in
      let ledger = try database.statement(.writeLedger)
      for queue in touched { try state.writeLedger(of: queue, with: ledger) }
      try salvage.write(database.connection)
    }
    guard salvage.files.isEmpty else { return }
    board.note { $0.lostRows += lostInAll }
    options.log.error(
      "the database was cut under the daemon: reports that were stored are gone, and count as corrupt",
      ["rows": String(lostInAll)])
  }

  private func writeContents(_ database: StoreDatabase) {
    hasNewNames = false
    // Where it fails, the next one to open the database writes it.
    let contents = try? TableOfContents(database.connection, state, epoch: epoch)
    contents?.write(to: options.databasePath + TableOfContents.suffix)
  }

  /// Without a checkpoint, and without touching any file.
  func letGo() {
    openDatabase?.connection.keepLogOnClose()
    (openDatabase, rescue) = (nil, nil)
  }

  /// Takes the state folder again where it was made anew.
  func relock() throws(SQLiteError) {
    guard !lock.isHome else { return }
    do { lock = try StateLock(folder: options.folder) } catch {
      throw SQLiteError(code: SQLiteError.ioError, message: error.description)
    }
  }
}

// MARK: Transactions
extension ReportStore {
  /// How a transaction ended that was not committed.
  struct Failure: Error {
    let error: SQLiteError
    /// The commit itself failed, and may yet hold.
    let isUncertain: Bool

    var storeError: StoreError {
      if isUncertain { return .uncertain(error.description) }
      return error.isDiskFull ? .diskFull : .unavailable(error.description)
    }
  }

  /// All of `body`, with the ledgers that it touched, or nothing of it. It holds no `await`: nobody else gets in between.
  func transaction<Result>(_ body: (StoreDatabase) throws(SQLiteError) -> Result) throws(Failure) -> Result {
    var isCommitting = false
    let settledBefore = unwrittenSettled
    touched.removeAll(keepingCapacity: true)
    do {
      let database = try self.database
      try database.statement(.begin).run()
      let result = try body(database)
      try writeLedgers(database)
      isCommitting = true
      try database.statement(.commit).run()
      for queue in touched { committed[queue] = state[queue].ledger.stored }
      if hasNewNames { writeContents(database) }
      scheduleCheckpoint(database)
      return result
    } catch {
      unwrittenSettled = settledBefore
      recover(from: error)
      // A full disk is noticed before the commit's mark is written; a failed write or sync may leave it behind.
      throw Failure(error: error, isUncertain: isCommitting && !error.isDiskFull)
    }
  }

  private func writeLedgers(_ database: StoreDatabase) throws(SQLiteError) {
    let ledger = try database.statement(.writeLedger)
    for queue in touched { try state.writeLedger(of: queue, with: ledger) }
  }

  /// Reads again what the database says. After anything but a full disk the file is opened anew, since what a connection
  /// holds of a file that failed it can't be trusted; a damaged one is set aside at once, without a restart: clients keep
  /// their connections, and what is answered stays known.
  func recover(from error: SQLiteError) {
    options.log.fault("store", "the database failed", ["error": error.description], level: .error)
    (contexts, contextSweep) = (ContextCache(), nil)
    (lostWithSalvage, hasNewNames) = (0, false)
    board.failed(error.description, error.isDiskFull ? .diskFull : .failing)
    if error.isDiskFull {
      ballast.cut()
      fullUntil = options.time.uptime + .seconds(1)
    }
    do {
      if let openDatabase, error.isDiskFull || !openDatabase.isHome() {
        // Without a file, this connection is all there is.
        openDatabase.connection.rollBack()
        if error.isDiskFull { openDatabase.emptyLog() }
        state = try StoreState(openDatabase.connection)
        salvage = try SalvageProgress(openDatabase.connection)
      } else {
        letGo()
        _ = try reopen(damagedBy: error.isCorruption ? error : nil)
      }
    } catch {
      letGo()
      board.failed(error.description, error.isDiskFull ? .diskFull : .failing)
    }
  }

  func reading<Result>(_ body: (StoreDatabase) throws(SQLiteError) -> Result) throws(StoreError) -> Result {
    do {
      return try body(database)
    } catch {
      recover(from: error)
      throw .unavailable(error.description)
    }
  }

  private func scheduleCheckpoint(_ database: StoreDatabase) {
    guard database.walBytes > logBytesMax(of: database), !isCheckpointScheduled else { return }
    isCheckpointScheduled = true
    Task { checkpoint() }
  }

  /// What it holds by then is copied at rest.
  private static let restingWALBytesMax = 1024 * 1024

  var isCheckpointDue: Bool {
    guard let checkpointedAt, let openDatabase, openDatabase.walBytes < Self.restingWALBytesMax else { return true }
    return options.time.uptime - checkpointedAt >= options.checkpointInterval
  }

  func checkpoint() {
    (isCheckpointScheduled, checkpointedAt) = (false, options.time.uptime)
    do {
      try database.checkpoint()
    } catch {
      recover(from: error)
    }
  }
}
