import PrismBase
import PrismSQL

/// Makes and drops days and merges blocks, on a connection and a queue of its own. Of all replicas
/// the one does a step that gets its advisory lock.
actor PostgreSQLUpkeep {
  private let executor = DispatchQueueExecutor(label: "prism.collector.upkeep")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Of one step.
  private static let deadline: Duration = .seconds(3600)
  /// A database whose clock differs by more drops nothing; in seconds.
  private static let differenceMax: Int64 = 60

  /// The state of what has time, in uptime.
  private struct QuietWork {
    var prunedAt: Duration?
    var rewritingRestsUntil: Duration = .zero
    var retention: RuledRetention
    let blocks = BlockReader()
  }

  private let session: SQLSession
  private let retention: Retention
  private let time: any TimeSource
  private let log: Logger
  /// Up to here, in uptime, this replica's service is noted.
  private var servedUntil: Duration
  /// The database's clock before this machine's.
  private(set) var clockAheadSeconds: Int64 = 0
  private var quiet: QuietWork
  /// Days that are due wait for an output, and have too many bytes.
  private(set) var isOverLag = false
  /// Reports that were dropped though an output had not taken them.
  private(set) var skipped: [String: Int] = [:]

  init(_ setup: PostgreSQLSetup, _ options: PostgreSQLPacketStore.Options, time: any TimeSource) {
    session = SQLSession { PostgreSQLDriver(setup, lasting: Self.deadline) }
    (self.time, log, servedUntil) = (time, options.log, time.uptime)
    retention = options.retention
    quiet = QuietWork(retention: RuledRetention(rules: retention.rules))
  }

  func close() { session.close() }

  /// Why nothing is dropped: the two clocks; nil: they agree.
  var clockWarning: String? {
    guard abs(clockAheadSeconds) > Self.differenceMax else { return nil }
    return
      "the database's clock differs from this machine's by \(clockAheadSeconds) s: no day is dropped until they agree "
      + "within \(Self.differenceMax) s"
  }

  /// - Returns: whether more is due at once.
  func slice() throws -> Bool {
    try step {
      try PostgreSQLDays(statements: $0).add()
      return false
    }
    if try step({ try PostgreSQLDays(statements: $0).dropDetached() }) { return true }
    guard try noteService(), clockWarning == nil else { return false }
    if try step({ try PostgreSQLDays(statements: $0).detachPackets() }) { return true }
    if let days = retention.days, try detachReports(olderThan: days) { return true }
    try prune()
    return try rewrite()
  }

  /// - Returns: false: another replica does the upkeep.
  private func noteService() throws -> Bool {
    try step { statements in
      let (own, seconds) = (time.unixMilliseconds / 1000, (time.uptime - servedUntil).components.seconds)
      clockAheadSeconds = try PostgreSQLDays(statements: statements).noteService(ownSeconds: seconds) - own
      servedUntil += .seconds(seconds)
      return true
    }
  }

  private static let mergedFact = "merged_report"

  /// Deletes some reports of a rule or merges some blocks, and rests nine times as long: that takes a tenth of a core at most.
  /// - Returns: whether there may be more.
  private func rewrite() throws -> Bool {
    let began = time.uptime
    guard began >= quiet.rewritingRestsUntil else { return true }
    let isMore = try deleteByRule() || merge()
    let ended = time.uptime
    quiet.rewritingRestsUntil = ended + (ended - began) * 9
    return isMore
  }

  private func deleteByRule() throws -> Bool {
    guard !retention.rules.isEmpty else { return false }
    return try rewriteBlocks { statements, tables in
      let days = try PostgreSQLDays(statements: statements).ruled(retention, end: try statements.driver.horizon())
      guard let work = try quiet.retention.work(in: days, statements) else { return false }
      let found = try quiet.blocks.next(work, of: quiet.retention, in: tables)
      quiet.retention.note(try quiet.retention.carryOut(found, tables), of: found, to: log)
      return true
    }
  }

  private func merge() throws -> Bool {
    try rewriteBlocks { statements, tables in
      let found = try quiet.blocks.merge(
        after: try statements.fact(Self.mergedFact) ?? 0, before: try statements.driver.horizon(),
        day: { $0.received.lowerBound / 86_400_000 }, of: tables)
      switch found {
      case .wait: return false
      case .stays(let id): try statements.set(Self.mergedFact, id)
      case .merged(_, let head, let body):
        try tables.replace(by: head, body)
        try statements.set(Self.mergedFact, head.last)
      }
      return true
    }
  }

  private func detachReports(olderThan days: Int) throws -> Bool {
    var detaching: PostgreSQLDays.Detaching?
    try step {
      detaching = try PostgreSQLDays(statements: $0).detachReports(olderThan: days, retention)
      return false
    }
    switch detaching {
    case nil: return false  // another replica does it
    case .nothingIsDue: isOverLag = false
    case .held(let isOverLag): self.isOverLag = isOverLag
    case .detached(let day, let rows, let dropped):
      isOverLag = false
      log.info("a day past retentionDay is dropped", ["day": day, "rows": String(rows)])
      skipped.merge(dropped, uniquingKeysWith: +)
      for (output, count) in dropped { log.error(LagPolicy.skipped, ["output": output, "reports": String(count)]) }
      return true
    }
    return false
  }

  private func prune() throws {
    if let prunedAt = quiet.prunedAt, time.uptime - prunedAt < .seconds(86_400) { return }
    try step {
      try PostgreSQLDays(statements: $0).pruneOthers()
      try $0.run(RecordTables.forgetAnswersInPostgreSQL)
      return false
    }
    while try step({ try Quotas.forgetDays(served: $0.fact(ServiceTime.fact) ?? 0, $0) }) {}
    quiet.prunedAt = time.uptime
  }

  private static let blocks =
    "SELECT pg_try_advisory_xact_lock(\(PostgreSQLDriver.textLockClass), hashtext('\(StoreTables.blocksLock)'))"

  /// Rewrites blocks, unless an erasure does, which may last.
  private func rewriteBlocks(_ body: (SQLStatements, StoreTables) throws -> Bool) throws -> Bool {
    try step { statements in
      guard try statements.integer(Self.blocks) == 1 else { return false }
      return try body(statements, StoreTables(statements))
    }
  }

  /// Runs one transaction, where no other replica does. A wait for its locks is short: packets would wait
  /// behind it.
  @discardableResult
  private func step(_ body: (SQLStatements) throws -> Bool) throws -> Bool {
    try session.perform(isWriting: true) { statements in
      let lock = "SELECT pg_try_advisory_xact_lock(\(PostgreSQLSchema.Lock.upkeep.key))"
      guard try statements.integer(lock) == 1 else { return false }
      try statements.run("SET LOCAL lock_timeout = 2000")
      try statements.run("SET LOCAL statement_timeout = 0")
      return try body(statements)
    }
  }
}
