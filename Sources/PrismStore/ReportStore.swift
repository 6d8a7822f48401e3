import Dispatch
import Glibc
import PrismBase
import PrismProtocol

/// The reports that were taken and have not left, on disk: `STATE/prism.db`, one SQLite database behind one serial queue
/// (4-store.md).
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
  private let lock: StateLock
  /// nil: the file could not be opened again after a failure; the next call tries.
  private var openDatabase: StoreDatabase?
  var state: StoreState
  /// Queues whose ledger the open transaction changed.
  var touched: Set<QueueID> = []
  var contexts = ContextCache()
  /// A body together with its context, while it is being bound.
  var scratch: [UInt8] = []
  var isCheckpointScheduled = false
  var policies: [NamespaceName: RetentionPolicy] = [:]
  private let ballast: Ballast
  /// When to look again whether a full disk has space; nil: it is not full.
  private var fullUntil: Duration?

  private init(
    options: StoreOptions, executor: DispatchQueueExecutor, lock: StateLock, database: StoreDatabase, epoch: String
  ) throws(SQLiteError) {
    (self.options, self.executor, self.lock) = (options, executor, lock)
    board = HealthBoard(options.time)
    (self.epoch, epochBytes) = (epoch, Array(epoch.utf8))
    state = try StoreState(database.connection)
    openDatabase = database
    ballast = Ballast(folder: options.folder, bytes: options.ballastBytes)
    if !ballast.restore() {
      fullUntil = options.time.uptime
      board.enter(.diskFull)
    }
  }

  /// How the store is, at once, whatever it is busy with.
  public nonisolated var health: StoreHealth { board.current }

  /// Takes the folder for this process, opens the database or makes a new one, and brings it to the newest version.
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
    do throws(SQLiteError) {
      do throws(SQLiteError) {
        return try openLocked(options, executor, lock)
      } catch  where error.isCorruption {
        let aside = setAside(options)
        options.log.error(
          "the database was damaged; it is set aside and a new one begun",
          ["set_aside": aside, "cause": error.description])
        return try openLocked(options, executor, lock)
      }
    } catch {
      if let newer = error.newerVersion {
        throw .newerVersion(path: options.databasePath, found: newer, known: Migration.newestVersion)
      }
      throw error.isDiskFull ? .diskFull : .unavailable(error.description)
    }
  }

  private static func openLocked(
    _ options: StoreOptions, _ executor: DispatchQueueExecutor, _ lock: StateLock
  ) throws(SQLiteError) -> ReportStore {
    let database = try StoreDatabase(options)
    let version = Int(try database.connection.firstInt("PRAGMA user_version") ?? 0)
    guard version <= Migration.newestVersion else { throw .newer(version) }
    try Migration.run(on: database.connection)
    guard let epoch = try database.connection.firstText("SELECT value FROM facts WHERE name = 'epoch'"),
      epoch.utf8.count == 20
    else { throw .nonsense }
    return try ReportStore(options: options, executor: executor, lock: lock, database: database, epoch: epoch)
  }

  /// Renames the file and its log; answers the new name.
  private static func setAside(_ options: StoreOptions) -> String {
    let name = "\(options.databasePath).corrupt-\(options.time.unixMilliseconds)"
    for suffix in ["", "-wal"] { rename(options.databasePath + suffix, name + suffix) }
    unlink(options.databasePath + "-shm")
    return name
  }

  /// The open file. - Throws: what SQLite says of opening it again.
  var database: StoreDatabase {
    get throws(SQLiteError) {
      if let openDatabase { return openDatabase }
      let database = try StoreDatabase(options)
      state = try StoreState(database.connection)
      openDatabase = database
      board.enter(fullUntil == nil ? .working : .diskFull)
      options.log.faultEnded("store", "the database is open again")
      return database
    }
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
    guard let database = openDatabase else { return }
    do {
      try database.checkpoint()
    } catch {
      options.log.warning("the last checkpoint failed; the next start does it", ["error": error.description])
    }
    openDatabase = nil
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
    touched.removeAll(keepingCapacity: true)
    do {
      let database = try self.database
      try database.statement(.begin).run()
      let result = try body(database)
      let ledger = try database.statement(.writeLedger)
      for queue in touched { try state.writeLedger(of: queue, with: ledger) }
      isCommitting = true
      try database.statement(.commit).run()
      scheduleCheckpoint(database)
      return result
    } catch {
      recover(from: error)
      // A full disk is noticed before the commit's mark is written; a failed write or sync may leave it behind.
      throw Failure(error: error, isUncertain: isCommitting && !error.isDiskFull)
    }
  }

  /// Reads again what the database says. After anything but a full disk the file is opened anew, since what a connection
  /// holds of a file that failed it can't be trusted.
  private func recover(from error: SQLiteError) {
    options.log.fault("store", "the database failed", ["error": error.description], level: .error)
    contexts = ContextCache()
    board.failed(error.description, error.isDiskFull ? .diskFull : .failing)
    do {
      if let openDatabase, error.isDiskFull {
        ballast.cut()
        fullUntil = options.time.uptime + .seconds(1)
        openDatabase.connection.rollBack()
        state = try StoreState(openDatabase.connection)
      } else {
        openDatabase = nil
        _ = try database
      }
    } catch {
      openDatabase = nil
    }
  }

  /// Reports are not taken on a full disk, until the ballast has its space again; that is tried once a second.
  func refusalWhileFull() -> Refusal? {
    guard let until = fullUntil else { return nil }
    let now = options.time.uptime
    guard now >= until, ballast.restore() else {
      if now >= until { fullUntil = now + .seconds(1) }
      return Self.diskFullRefusal
    }
    fullUntil = nil
    board.enter(.working)
    options.log.info("the disk has space again; reports are taken")
    return nil
  }

  func reading<Result>(_ body: (StoreDatabase) throws(SQLiteError) -> Result) throws(StoreError) -> Result {
    do {
      return try body(database)
    } catch {
      recover(from: error)
      throw .unavailable(error.description)
    }
  }

  /// Past this much the log is copied into the file after the commit was answered.
  private static let walBytesMax = 16 * 1024 * 1024

  private func scheduleCheckpoint(_ database: StoreDatabase) {
    guard database.walBytes > Self.walBytesMax, !isCheckpointScheduled else { return }
    isCheckpointScheduled = true
    Task { checkpoint() }
  }

  func checkpoint() {
    isCheckpointScheduled = false
    do {
      try database.checkpoint()
    } catch {
      recover(from: error)
    }
  }
}
