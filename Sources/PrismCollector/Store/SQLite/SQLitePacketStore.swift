import PrismBase
import PrismConfig
import PrismProtocol
import PrismSQLite
import Synchronization

/// Packets and reports in `collector.db` of a state folder: for one process, nothing to set up.
///
/// A commit is synced before its answer. After a commit that failed the file is opened again, since only reading it can
/// tell what holds. How old something is counts in days on which the collector ran (`servedSeconds`): a wrong wall clock
/// makes nothing older.
actor SQLitePacketStore: ReadStore {
  struct Options: Sendable {
    var folder: String
    /// Reports are deleted after as many days; nil: they are kept.
    var retentionDays: Int?
    /// Packet ids are forgotten after as many days, but for the last `idsKept` of each stream.
    var idDays: Int64 = 30
    var idsKept: Int64 = 1024
    /// Their reports are not deleted before these outputs took them.
    var outputs: [String] = []
    /// Of reports past `retentionDays` that wait for an output; with more `onLag` decides.
    var outputLagBytes: Int64 = 10_240 * 1_048_576
    var onLag = LagPolicy.hold
    /// A larger database is checked after an unclean end while packets are taken, a smaller one before.
    var checkedAtOnceBytesMax = 256 * 1_048_576
    /// A VFS that was registered under this name; nil: the system's.
    var vfs: String?
    var time: any TimeSource = SystemTime()
    var log: Logger
  }

  private let executor = DispatchQueueExecutor(label: "prism.collector.store")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let options: Options
  /// nil: closed.
  private var lock: StateLock?
  private let files: DatabaseFiles
  let readers: StoreReaders
  private let failureNow = Mutex<String?>(nil)
  private let warningsNow = Mutex<[String]>([])
  private let counts = Mutex(StoreCounts())
  private var database: CollectorDatabase
  private var isClosed = false
  private var maintenance = SQLiteMaintenance()
  private let laterCheck = Mutex<Task<Void, Never>?>(nil)

  nonisolated var failure: String? { failureNow.withLock { $0 } }
  nonisolated var warnings: [String] {
    warningsNow.withLock { $0 } + (readers.damaged.warning.map { [$0] } ?? [])
  }
  nonisolated var figures: StoreCounts { counts.withLock { $0 } }
  nonisolated var recheckInterval: Duration? { nil }
  var unixMilliseconds: Int64 { options.time.unixMilliseconds }

  /// Takes the folder for this process, and opens the database in it, checked where the last run did not end in order.
  init(_ options: Options) throws {
    self.options = options
    lock = try StateLock(folder: options.folder)
    files = DatabaseFiles(folder: options.folder)
    let source = SQLiteSource(path: files.path, vfs: options.vfs)
    readers = StoreReaders(reports: source, page: source, records: source)
    files.protect()
    database = CollectorDatabase(files, options, source, readers.damaged)
    var isLeftUnchecked = false
    do throws(SQLiteError) { isLeftUnchecked = try database.openAtStart() } catch {
      guard error.isDamagedAgain else { throw error }
      failureNow.withLock { $0 = error.message }
      options.log.error("the collector takes no packets", ["cause": error.message])
    }
    source.setHandler { [weak self] error, since in
      await self?.failed(reading: error, since: since) ?? .unavailable("the collector stops")
    }
    if isLeftUnchecked {
      let check = Task { await checkLater() }
      laterCheck.withLock { $0 = check }
    }
  }

  func close() async {
    guard !isClosed else { return }
    isClosed = true
    let wasOpen = database.isOpen
    // The connection that writes is the last one: it empties the log.
    await readers.close()
    await database.merging.close()
    database.close()
    if wasOpen { files.markClean() }
    lock = nil
  }

  // MARK: Taking

  func take(_ group: [PacketSubmission]) async throws(StoreFailure) -> [PacketOutcome] {
    let started = options.time.uptime
    guard !refusesPackets else { throw .unavailable(LagPolicy.cause) }
    return try perform("packets can't be stored", "packets are stored again") { database throws(SQLiteError) in
      let (day, now) = (self.database.servedSeconds / 86_400, options.time.unixMilliseconds)
      let idsSince = now - options.idDays * 86_400_000
      let outcomes = try database.connection.transaction { () throws(SQLiteError) in
        try self.database.noteServed(in: database)
        let mark = try SQLiteError.only { try database.tables.mark() }
        let outcomes = try database.take(group, receivedTime: now, day: day, idsSince: idsSince, in: mark)
        counts.withLock { $0.mark = mark }
        return outcomes
      }
      self.database.noteNewest(of: database)
      counts.withLock { $0.add(packets: group.count, lasted: options.time.uptime - started) }
      return outcomes
    }
  }

  // MARK: Records

  func change(
    _ changes: [RecordChange], of place: RecordPlace, if condition: ChangeCondition
  ) async throws(RecordFailure) -> [RecordChanged] {
    let result: Result<[RecordChanged], RecordFailure>
    do throws(StoreFailure) {
      let now = unixMilliseconds
      result = try perform("records can't be changed", "records are changed again") { database throws(SQLiteError) in
        let connection = database.connection
        try connection.execute("BEGIN IMMEDIATE")
        defer { connection.rollBack() }
        let result = try SQLiteError.only { try database.records.change(changes, of: place, if: condition, now: now) }
        if case .success = result { try connection.execute("COMMIT") }
        return result
      }
    } catch { throw .store(error) }
    return try result.get()
  }

  /// - Parameter since: replacements before the reading began.
  private func failed(reading error: SQLiteError, since: Int) -> StoreFailure {
    if since == database.source.replacements, error.isDamage || (error.isStatementError && database.hasLostTables) {
      replace(error.description)
    }
    return .unavailable("the database can't be read")
  }

  // MARK: Outputs

  nonisolated func outputSource(_ name: String) -> any OutputSource { SQLiteOutputSource(store: self, name: name) }

  /// Runs a transaction about the state of an output.
  func askForOutput<Result: Sendable>(
    _ body: @Sendable (PacketDatabase) throws(SQLiteError) -> Result
  ) async throws(StoreFailure) -> Result {
    try perform("the state of an output is not kept", "the state of an output is kept again") {
      database throws(SQLiteError) in
      try database.connection.transaction { () throws(SQLiteError) in try body(database) }
    }
  }

  // MARK: Erasing

  func changing<Value: Sendable>(_ body: @Sendable (StoreTables) throws -> Value) throws(StoreFailure) -> Value {
    try perform("reports can't be erased", "reports are erased again") { database throws(SQLiteError) in
      try database.connection.transaction { () throws(SQLiteError) in
        try SQLiteError.only { try body(database.tables) }
      }
    }
  }

  func scrub(_ days: Set<Int64>) async throws(StoreFailure) {
    for reader in readers.all + [database.merging] { await reader.close() }
    try perform("erased reports can't be overwritten", "erased reports are overwritten again") {
      _ throws(SQLiteError) in
      // Its temporary file is on the disk: it is as large as the database.
      let connection = try SQLiteConnection(.init(path: files.path, vfs: options.vfs))
      try connection.execute("PRAGMA busy_timeout = 5000; PRAGMA temp_store = FILE; VACUUM")
      guard try connection.firstInt("PRAGMA wal_checkpoint(TRUNCATE)") == 0 else {
        throw SQLiteError(code: 5, message: "a reader holds the log of the database; erase again")
      }
    }
    database.letGo()  // it remembers streams that may be gone
  }

  // MARK: Maintaining

  func maintain() async throws(StoreFailure) -> Bool {
    let today = database.servedSeconds / 86_400
    let policy = SQLiteMaintenance.Policy(
      today: today, idsBefore: today - options.idDays, idsKept: options.idsKept,
      reportDays: options.retentionDays.map { Int64($0) }, servedSeconds: database.servedSeconds,
      outputs: options.outputs,
      outputLagBytes: options.outputLagBytes, onLag: options.onLag)
    let isMoreDue = try perform("old reports can't be deleted", "old reports are deleted again") {
      database throws(SQLiteError) in
      try database.connection.transaction { () throws(SQLiteError) in try self.database.noteServed(in: database) }
      return try maintenance.slice(of: database, policy, files, options)
    }
    counts.withLock { $0.skipped = maintenance.skipped }
    warningsNow.withLock { $0 = maintenance.isOverLag && !refusesPackets ? [LagPolicy.warning] : [] }
    if refusesPackets { note(failure: LagPolicy.cause, "packets are refused") }
    return if isMoreDue { true } else { try await merge() }
  }

  /// Merges some blocks, and rests nine times as long: that takes a tenth of a core at most, and packets come first.
  /// - Returns: whether there may be more.
  private func merge() async throws(StoreFailure) -> Bool {
    let began = options.time.uptime
    guard began >= maintenance.mergingRestsUntil else { return true }
    let (last, days) = try perform("blocks can't be merged", "blocks are merged again") {
      database throws(SQLiteError) in
      (try database.fact(PacketDatabase.mergedFact) ?? 0, try database.dayStarts())
    }
    let found = try await database.merging.merge(after: last, days: days)
    if case .wait = found { return false }
    try perform("blocks can't be merged", "blocks are merged again") { database throws(SQLiteError) in
      try database.take(found)
    }
    let ended = options.time.uptime
    maintenance.mergingRestsUntil = ended + (ended - began) * 9
    return true
  }

  private var refusesPackets: Bool { maintenance.isOverLag && options.onLag == .refuse }

  /// SQLite's check of a file that is too large to be checked before the start.
  private func checkLater() async {
    let before = database.source.replacements
    let found = await IntegrityCheck(path: files.path, vfs: options.vfs).runInBackground()
    guard !isClosed, database.source.replacements == before else { return }
    switch found {
    case .success(let faults):
      if let fault = faults.first { replace(fault) }
    case .failure(let error):
      options.log.warning("the collector's database could not be checked", ["cause": error.description])
    }
  }

  /// Waits until the check of a large database is over, if there is one.
  nonisolated func waitForCheck() async { await laterCheck.withLock { $0 }?.value }

  // MARK: Failures

  func perform<Result>(
    _ fault: String, _ end: String, _ body: (PacketDatabase) throws(SQLiteError) -> Result
  ) throws(StoreFailure) -> Result {
    guard !isClosed else { throw .unavailable("the collector stops") }
    do throws(SQLiteError) {
      let result = try body(try database.opened())
      if failure != nil, !refusesPackets {
        failureNow.withLock { $0 = nil }
        options.log.faultEnded("collector.store", end)
      }
      return result
    } catch {
      throw failed(error, fault)
    }
  }

  private func failed(_ error: SQLiteError, _ fault: String) -> StoreFailure {
    database.letGo()
    maintenance = SQLiteMaintenance()
    if error.isRejection { return .rejected("SQLite \(error.code)") }
    if error.isDamage {
      replace(error.description)
      return .unavailable(database.refusal?.error.message ?? "its database was damaged and is replaced")
    }
    if error.isDamagedAgain { database.refuse(error) }
    let cause = error.isDiskFull ? "no space is left on its disk" : error.cause
    note(failure: cause, fault)
    return .unavailable(cause)
  }

  private func note(failure cause: String, _ fault: String) {
    options.log.fault("collector.store", fault, ["cause": cause], level: .error)
    failureNow.withLock { $0 = cause }
  }

  private func replace(_ cause: String) {
    guard !isClosed else { return }
    for reader in readers.all + [database.merging] { reader.closeLater() }
    do throws(SQLiteError) { try database.replace(for: cause) } catch {
      note(failure: error.cause, "the collector's database is damaged, and no new one is begun")
    }
    database.source.noteReplacement()
  }
}
