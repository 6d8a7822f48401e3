import PrismBase
import PrismConfig
import PrismRecovery
import PrismSQL
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
    var retention = Retention()
    var quotas = Quotas()
    /// Packet ids are forgotten after as many days, but for the last `idsKept` of each stream.
    var idDays: Int64 = 30
    var idsKept: Int64 = 1024
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
  let health: StoreHealth
  private var database: CollectorDatabase
  private var isClosed = false
  private var maintenance: SQLiteMaintenance
  private let laterCheck = Mutex<Task<Void, Never>?>(nil)

  nonisolated var recheckInterval: Duration? { nil }
  nonisolated var quotas: Quotas { options.quotas }
  var unixMilliseconds: Int64 { options.time.unixMilliseconds }

  /// Takes the folder for this process, and opens the database in it, checked where the last run did not end in order.
  init(_ options: Options) throws {
    (self.options, health) = (options, StoreHealth(options.log))
    lock = try StateLock(folder: options.folder)
    files = DatabaseFiles(folder: options.folder)
    guard !files.isCarried else {
      throw StoreFailure.unavailable(
        "`migrate --from` carried the store in \(options.folder) to another database: name that one as `store`. To use the folder "
          + "again, delete the file `carried` in it")
    }
    maintenance = SQLiteMaintenance(files, options)
    let source = SQLiteSource(path: files.path, vfs: options.vfs)
    readers = StoreReaders(reports: source, page: source, records: source)
    files.protect()
    database = CollectorDatabase(files, options, source, readers.damaged)
    var isLeftUnchecked = false
    do throws(SQLiteError) { isLeftUnchecked = try database.openAtStart() } catch {
      // Without room on the disk nothing is written: it is opened with the next packet. Reports are read all the same.
      guard error.isDamagedAgain || error.isDiskFull else { throw error }
      let cause = error.isDiskFull ? Self.diskFull : error.message
      health.fails(cause)
      options.log.error("the collector takes no packets", ["cause": cause])
    }
    source.setHandler { [weak self] error, since in
      await self?.failed(reading: error, since: since) ?? .unavailable("the collector stops")
    }
    if isLeftUnchecked {
      let check = Task { await checkLater() }
      laterCheck.withLock { $0 = check }
    }
  }

  private static let diskFull = "no space is left on its disk"

  func close() async {
    guard !isClosed else { return }
    isClosed = true
    // The connection that writes is the last one: it empties the log.
    await readers.close()
    await database.merging.close()
    database.close()
    lock = nil
  }

  // MARK: Taking

  func take(_ group: [PacketSubmission]) async throws(StoreFailure) -> [PacketOutcome] {
    let started = options.time.uptime
    guard !refusesPackets else { throw .unavailable(LagPolicy.cause) }
    return try perform("packets can't be stored", "packets are stored again") { database in
      let (day, now) = (self.database.servedSeconds / 86_400, options.time.unixMilliseconds)
      let idsSince = now - options.idDays * 86_400_000
      let outcomes = try database.session.perform(isWriting: true) { _ in
        try self.database.noteServed(in: database)
        let mark = try database.tables.mark()
        let outcomes = try database.take(
          group, options.quotas, receivedTime: now, day: day, idsSince: idsSince, in: mark)
        health.count { $0.mark = mark }
        return outcomes
      }
      self.database.noteNewest(of: database)
      health.count { $0.add(packets: group.count, lasted: options.time.uptime - started) }
      return outcomes
    }
  }

  // MARK: Reading and changing

  /// - Parameter since: replacements before the reading began.
  private func failed(reading error: SQLiteError, since: Int) -> StoreFailure {
    let isDamage = files.place.isDamage(error) || error.isStatementError && database.hasLostTables
    if since == database.source.replacements, isDamage {
      replace(error.description)
    }
    return .unavailable("the database can't be read")
  }

  nonisolated func outputSource(_ name: String) -> any OutputSource { SQLiteOutputSource(store: self, name: name) }

  func changing<Value: Sendable, Refusal: Error>(
    _ fault: String, _ end: String, refusing body: @Sendable (StoreTables) throws -> Result<Value, Refusal>
  ) async throws(StoreFailure) -> Result<Value, Refusal> {
    try perform(fault, end) { database in
      try database.session.perform(isWriting: true, commits: \.isSuccess) { try body(StoreTables($0)) }
    }
  }

  func scrub(_ days: Set<Int64>) async throws(StoreFailure) {
    for reader in readers.all + [database.merging] { await reader.close() }
    try perform("erased reports can't be overwritten", "erased reports are overwritten again") { _ in
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
    let isMoreDue = try perform("old reports can't be deleted", "old reports are deleted again") { database in
      try database.session.perform(isWriting: true) { _ in try self.database.noteServed(in: database) }
      return try maintenance.slice(of: database, servedSeconds: self.database.servedSeconds)
    }
    health.count { $0.skipped = maintenance.skipped }
    health.warn(maintenance.isOverLag && !refusesPackets ? [LagPolicy.warning] : [])
    if refusesPackets { health.fails(LagPolicy.cause, "packets are refused") }
    return if isMoreDue { true } else { try await rewrite() }
  }

  /// Deletes some reports of a rule or merges some blocks, and rests nine times as long: that takes a tenth of a core at most, and
  /// packets come first.
  /// - Returns: whether there may be more.
  private func rewrite() async throws(StoreFailure) -> Bool {
    let began = options.time.uptime
    guard began >= maintenance.rewritingRestsUntil else { return true }
    var isMore = try await deleteByRule()
    if !isMore { isMore = try await merge() }
    guard isMore else { return false }
    let ended = options.time.uptime
    maintenance.rewritingRestsUntil = ended + (ended - began) * 9
    return true
  }

  private func deleteByRule() async throws(StoreFailure) -> Bool {
    let (fault, end) = ("old reports of a rule can't be deleted", "old reports of rules are deleted again")
    guard let work = try perform(fault, end, { try maintenance.ruledWork(in: $0) }) else { return false }
    let found = try await database.merging.next(work, of: maintenance.retention)
    try perform(fault, end) { try maintenance.carryOut(found, in: $0) }
    return true
  }

  private func merge() async throws(StoreFailure) -> Bool {
    let (last, days) = try perform("blocks can't be merged", "blocks are merged again") { try $0.mergeState() }
    let found = try await database.merging.merge(after: last, days: days)
    if case .wait = found { return false }
    try perform("blocks can't be merged", "blocks are merged again") { try $0.take(found) }
    return true
  }

  private var refusesPackets: Bool { maintenance.isOverLag && options.retention.onLag == .refuse }

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
    _ fault: String, _ end: String, _ body: (PacketDatabase) throws -> Result
  ) throws(StoreFailure) -> Result {
    guard !isClosed else { throw .unavailable("the collector stops") }
    do {
      let result = try body(try database.opened())
      if !refusesPackets { health.succeeds(end) }
      return result
    } catch {
      // A database that is not as it must be fails otherwise.
      throw failed(error as? SQLiteError ?? .corrupt("\(error)"), fault)
    }
  }

  private func failed(_ error: SQLiteError, _ fault: String) -> StoreFailure {
    database.letGo()
    maintenance = SQLiteMaintenance(files, options)
    if error.isRejection { return .rejected("SQLite \(error.code)") }
    if files.place.isDamage(error) {
      replace(error.description)
      return .unavailable(database.refusal?.error.message ?? "its database was damaged and is replaced")
    }
    if error.isDamagedAgain { database.refuse(error) }
    let cause = error.isDiskFull ? Self.diskFull : error.cause
    health.fails(cause, fault)
    return .unavailable(cause)
  }

  private func replace(_ cause: String) {
    guard !isClosed else { return }
    for reader in readers.all + [database.merging] { reader.closeLater() }
    do throws(SQLiteError) { try database.replace(for: cause) } catch {
      health.fails(error.cause, "the collector's database is damaged, and no new one is begun")
    }
    database.source.noteReplacement()
  }
}
