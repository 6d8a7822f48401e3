import PrismBase

/// Makes and drops days and merges blocks, on a connection and a queue of its own. Of all replicas
/// the one does a step that gets its advisory lock.
actor PostgreSQLUpkeep {
  private let executor = DispatchQueueExecutor(label: "prism.collector.upkeep")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private static let deadline: Duration = .seconds(3600)

  /// The state of what has time, in uptime.
  private struct QuietWork {
    var prunedAt: Duration?
    var mergingRestsUntil: Duration = .zero
    let blocks = BlockReader()
  }

  private let setup: PostgreSQLSetup
  private let retentionDays: Int?
  private let lag: PostgreSQLDays.Lag
  private let time: any TimeSource
  private let log: Logger
  /// Up to here, in uptime, this replica's service is noted.
  private var servedUntil: Duration
  /// Why nothing is dropped: the two clocks; nil: they agree.
  private(set) var clockWarning: String?
  private var connection: PostgreSQLConnection?
  private var quiet = QuietWork()
  /// Days that are due wait for an output, and have too many bytes.
  private(set) var isOverLag = false
  /// Reports that were dropped though an output had not taken them.
  private(set) var skipped: [String: Int] = [:]

  init(_ setup: PostgreSQLSetup, _ options: PostgreSQLPacketStore.Options, time: any TimeSource) {
    (self.setup, self.time, log, servedUntil) = (setup, time, options.log, time.uptime)
    retentionDays = options.retentionDays
    lag = .init(outputs: options.outputs, bytesMax: options.outputLagBytes, policy: options.onLag)
  }

  func close() { connection = nil }

  /// - Returns: whether more is due at once.
  func slice() throws(PostgreSQLSetup.Refusal) -> Bool {
    let connection = if let connection { connection } else { try setup.connect() }
    self.connection = connection
    do throws(PostgreSQLError) {
      let days = PostgreSQLDays(connection)
      try step { (by) throws(PostgreSQLError) in
        try days.add(by: by)
        return false
      }
      if try step({ (by) throws(PostgreSQLError) in try days.dropDetached(by: by) }) { return true }
      guard try noteService(), clockWarning == nil else { return false }
      if try step({ (by) throws(PostgreSQLError) in
        var facts = try ServiceFacts(connection, by: by)
        return try days.detachPackets(&facts, by: by)
      }) {
        return true
      }
      if let retentionDays, try detachReports(connection, days, olderThan: retentionDays) { return true }
      try prune(days)
      return try merge(connection)
    } catch {
      if error.endsConnection { self.connection = nil }
      throw .failed(error)
    }
  }

  /// - Returns: false: another replica does the upkeep.
  private func noteService() throws(PostgreSQLError) -> Bool {
    guard let connection else { return false }
    return try step { (by) throws(PostgreSQLError) in
      let own = time.unixMilliseconds / 1000
      var facts = try ServiceFacts(connection, by: by)
      let seconds = (time.uptime - servedUntil).components.seconds
      try facts.note(ownSeconds: seconds)
      servedUntil += .seconds(seconds)
      let difference = facts.databaseSeconds - own
      let isTooMuch = abs(difference) > ServiceFacts.differenceMax
      clockWarning =
        isTooMuch
        ? "the database's clock differs from this machine's by \(difference) s: no day is dropped until they agree within "
          + "\(ServiceFacts.differenceMax) s" : nil
      return true
    }
  }

  private static let mergedFact = "merged_report"

  /// Merges some blocks, and rests nine times as long: that takes a tenth of a core at most.
  /// - Returns: whether there may be more.
  private func merge(_ connection: PostgreSQLConnection) throws(PostgreSQLError) -> Bool {
    let began = time.uptime
    guard began >= quiet.mergingRestsUntil else { return true }
    let isMore = try step { (by) throws(PostgreSQLError) in
      let driver = PostgreSQLDriver(connection, by: by)
      let merged = try connection.query(
        "SELECT coalesce(max(value), 0) FROM facts WHERE name = '\(Self.mergedFact)'", by: by)
      let found = try PostgreSQLError.only {
        try quiet.blocks.merge(
          after: merged.int(0, 0), before: try driver.horizon(), day: { $0.received.lowerBound / 86_400_000 },
          of: StoreTables(driver))
      }
      let last: Int64
      switch found {
      case .wait: return false
      case .stays(let id): last = id
      case .merged(_, let head, let body):
        try PostgreSQLError.only { try StoreTables(driver).replace(by: head, body) }
        last = head.last
      }
      _ = try connection.query(
        "INSERT INTO facts VALUES ('\(Self.mergedFact)', $1) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        [String(last)], by: by)
      return true
    }
    let ended = time.uptime
    quiet.mergingRestsUntil = ended + (ended - began) * 9
    return isMore
  }

  private func detachReports(_ connection: PostgreSQLConnection, _ days: PostgreSQLDays, olderThan retentionDays: Int)
    throws(PostgreSQLError) -> Bool
  {
    var detaching: PostgreSQLDays.Detaching?
    try step { (by) throws(PostgreSQLError) in
      var facts = try ServiceFacts(connection, by: by)
      detaching = try days.detachReports(olderThan: retentionDays, lag, &facts, by: by)
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

  private func prune(_ days: PostgreSQLDays) throws(PostgreSQLError) {
    if let prunedAt = quiet.prunedAt, time.uptime - prunedAt < .seconds(86_400) { return }
    try step { (by) throws(PostgreSQLError) in
      try days.pruneOthers(by: by)
      try connection?.execute(RecordTables.forgetAnswersInPostgreSQL, by: by)
      return false
    }
    quiet.prunedAt = time.uptime
  }

  /// Runs one transaction, where no other replica does. A wait for its locks is short: packets would wait
  /// behind it.
  @discardableResult
  private func step(
    _ body: (Deadline) throws(PostgreSQLError) -> Bool
  ) throws(PostgreSQLError) -> Bool {
    guard let connection else { return false }
    let by = Deadline(Self.deadline)
    return try connection.transaction(by: by) { () throws(PostgreSQLError) in
      let lock = "\(PostgreSQLSchema.lockClass), \(PostgreSQLSchema.Lock.upkeep.rawValue)"
      guard try connection.query("SELECT pg_try_advisory_xact_lock(\(lock))", by: by).bool(0, 0) else { return false }
      try connection.execute("SET LOCAL lock_timeout = 2000; SET LOCAL statement_timeout = 0", by: by)
      return try body(by)
    }
  }
}
