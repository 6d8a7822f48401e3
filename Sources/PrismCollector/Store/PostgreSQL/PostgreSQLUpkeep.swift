import PrismBase

/// Makes, closes and drops days, on a connection and a queue of its own: an index on a day takes minutes. Of all replicas
/// the one does a step that gets its advisory lock.
actor PostgreSQLUpkeep {
  private let executor = DispatchQueueExecutor(label: "prism.collector.upkeep")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private static let deadline: Duration = .seconds(3600)

  private let setup: PostgreSQLSetup
  private let retentionDays: Int?
  private let lag: PostgreSQLDays.Lag
  private let time: any TimeSource
  private var connection: PostgreSQLConnection?
  private var prunedAt: Duration?
  /// Days that are due wait for an output, and have too many bytes.
  private(set) var isOverLag = false
  /// Reports that were dropped though an output had not taken them.
  private(set) var skipped: [String: Int] = [:]

  init(_ setup: PostgreSQLSetup, _ options: PostgreSQLPacketStore.Options, time: any TimeSource) {
    (self.setup, self.time) = (setup, time)
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
      if try step({ (by) throws(PostgreSQLError) in try days.close(by: by) }) { return true }
      if try step({ (by) throws(PostgreSQLError) in try days.detachPackets(by: by) }) { return true }
      if let retentionDays, try detachReports(days, olderThan: retentionDays) { return true }
      try prune(days)
      return false
    } catch {
      if error.endsConnection { self.connection = nil }
      throw .failed(error)
    }
  }

  private func detachReports(_ days: PostgreSQLDays, olderThan retentionDays: Int) throws(PostgreSQLError) -> Bool {
    var detaching: PostgreSQLDays.Detaching?
    try step { (by) throws(PostgreSQLError) in
      detaching = try days.detachReports(olderThan: retentionDays, lag, by: by)
      return false
    }
    switch detaching {
    case nil: return false  // another replica does it
    case .nothingIsDue: isOverLag = false
    case .held(let isOverLag): self.isOverLag = isOverLag
    case .detached(let dropped):
      isOverLag = false
      skipped.merge(dropped, uniquingKeysWith: +)
      return true
    }
    return false
  }

  private func prune(_ days: PostgreSQLDays) throws(PostgreSQLError) {
    if let prunedAt, time.uptime - prunedAt < .seconds(86_400) { return }
    try step { (by) throws(PostgreSQLError) in
      try days.pruneOthers(by: by)
      try connection?.execute(PostgreSQLRecordTable.forgetAnswers, by: by)
      if let retentionDays { try connection?.execute(PostgreSQLTypes.forget(olderThan: retentionDays), by: by) }
      return false
    }
    prunedAt = time.uptime
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
