import Glibc
import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import Synchronization

/// Packets and reports in PostgreSQL, which any number of collectors share.
///
/// A commit that is not known to be at rest (the connection was lost, the deadline passed, no standby confirmed it) is a
/// failure, and its packets come again. Until the database commits again, packets are refused at once: each group that
/// waits for a missing standby would hold a connection and its streams' rows.
actor PostgreSQLPacketStore: ReadStore {
  struct Options: Sendable {
    var target: PostgreSQLTarget
    /// Reports are deleted after as many days; nil: they are kept.
    var retentionDays: Int?
    /// Days past `retentionDays` are not dropped before these outputs took them.
    var outputs: [String] = []
    /// Of days past `retentionDays` that wait for an output; with more `onLag` decides.
    var outputLagBytes: Int64 = 10_240 * 1_048_576
    var onLag = LagPolicy.hold
    /// Of one group, from its begin to its commit.
    var commitDeadline: Duration = .seconds(10)
    var time: any TimeSource = SystemTime()
    var log: Logger
  }

  private static let attemptsMax = 8

  private let executor = DispatchQueueExecutor(label: "prism.collector.store")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let options: Options
  private nonisolated var setup: PostgreSQLSetup {
    PostgreSQLSetup(target: options.target, deadline: options.commitDeadline)
  }
  let readers: StoreReaders
  /// Of changes of records.
  let writing: StoreReader
  private let upkeep: PostgreSQLUpkeep
  private let health = Mutex<(failure: String?, warnings: [String])>((nil, []))
  private let counts = Mutex(StoreCounts())
  private var connection: PostgreSQLConnection?
  private let packer: RestPacker
  private var recovery: Task<Void, Never>?
  private var isClosed = false
  private var isOverLag = false

  nonisolated var failure: String? { health.withLock { $0.failure } }
  nonisolated var warnings: [String] {
    health.withLock { $0.warnings } + (readers.damaged.warning.map { [$0] } ?? [])
  }
  nonisolated var recheckInterval: Duration? { .milliseconds(500) }
  nonisolated var figures: StoreCounts { counts.withLock { $0 } }

  /// Connects and makes the tables in an empty schema. A database that is away, starting or full of connections is
  /// waited for in the background.
  /// - Throws: what waiting does not change: a newer schema, a role without rights.
  init(_ options: Options) throws(PostgreSQLSetup.Refusal) {
    self.options = options
    do throws(PacketError) { packer = try RestPacker() } catch {
      throw .failed(PostgreSQLError(kind: .lost, message: "there is no memory to pack reports"))
    }
    let setup = PostgreSQLSetup(target: options.target, deadline: options.commitDeadline)
    readers = StoreReaders(
      reports: PostgreSQLSetup(target: options.target, deadline: .seconds(30)).byIndex,
      page: PostgreSQLSetup(target: options.target, deadline: .seconds(5)).byIndex, records: setup)
    writing = StoreReader(setup, label: "writing")
    upkeep = PostgreSQLUpkeep(setup, options, time: options.time)
    do throws(PostgreSQLSetup.Refusal) { connection = try setup.connect() } catch {
      guard error.isTemporary else { throw error }
      health.withLock { $0.failure = error.description }
      options.log.fault("collector.store", "the database is not reached", ["cause": error.description], level: .error)
      Task { await recover() }
    }
  }

  func close() async {
    isClosed = true
    recovery?.cancel()
    connection = nil
    await readers.close()
    await writing.close()
    await upkeep.close()
  }

  // MARK: Taking

  func take(_ group: [PacketSubmission]) async throws(StoreFailure) -> [PacketOutcome] {
    guard !isClosed else { throw .unavailable("the collector stops") }
    if recovery != nil { throw .unavailable(failure ?? "the database is away") }
    if isOverLag { throw .unavailable(LagPolicy.cause) }
    let started = options.time.uptime
    let deadline = Deadline(options.commitDeadline)
    do throws(PostgreSQLSetup.Refusal) {
      let outcomes = try take(group, by: deadline)
      counts.withLock { $0.add(packets: group.count, lasted: options.time.uptime - started) }
      succeeded()
      return outcomes
    } catch {
      throw failed(error)
    }
  }

  private func take(_ group: [PacketSubmission], by deadline: Deadline) throws(PostgreSQLSetup.Refusal)
    -> [PacketOutcome]
  {
    var attempt = 0
    while true {
      attempt += 1
      let connection = try opened()
      do throws(PostgreSQLError) {
        var transaction = GroupTransaction(connection, group, by: deadline, packer)
        let outcomes = try transaction.run()
        counts.withLock { $0.mark = transaction.mark }
        return outcomes
      } catch {
        if error.endsConnection { self.connection = nil }
        // An error that ends the connection leaves the outcome open; after all others nothing is committed.
        guard !error.endsConnection, error.isTransient || error.isDayMissing, attempt < Self.attemptsMax else {
          throw .failed(error)
        }
        counts.withLock { $0.retries += 1 }
        if error.isDayMissing { try addDays(connection, deadline) } else { usleep(.random(in: 1000...20_000)) }
      }
    }
  }

  private func addDays(
    _ connection: PostgreSQLConnection, _ deadline: Deadline
  ) throws(PostgreSQLSetup.Refusal) {
    do throws(PostgreSQLError) {
      try connection.transaction(by: deadline) { () throws(PostgreSQLError) in
        let lock = "\(PostgreSQLSchema.lockClass), \(PostgreSQLSchema.Lock.upkeep.rawValue)"
        _ = try connection.query("SELECT pg_advisory_xact_lock(\(lock))", by: deadline)
        try PostgreSQLDays(connection).add(by: deadline)
      }
    } catch {
      if error.endsConnection { self.connection = nil }
      throw .failed(error)
    }
  }

  private func opened() throws(PostgreSQLSetup.Refusal) -> PostgreSQLConnection {
    if let connection { return connection }
    let opened = try setup.connect()
    connection = opened
    return opened
  }

  // MARK: Maintaining

  nonisolated func outputSource(_ name: String) -> any OutputSource {
    PostgreSQLOutputSource(setup.byIndex, name: name, time: options.time)
  }

  func maintain() async throws(StoreFailure) -> Bool {
    if isClosed || recovery != nil { return false }
    do throws(PostgreSQLSetup.Refusal) {
      let isMoreDue = try await upkeep.slice()
      let skipped = await upkeep.skipped
      counts.withLock { $0.skipped = skipped }
      let (isLate, clock) = (await upkeep.isOverLag, await upkeep.clockWarning)
      health.withLock {
        $0.warnings = (clock.map { [$0] } ?? []) + (isLate && options.onLag == .hold ? [LagPolicy.warning] : [])
      }
      if let clock {
        options.log.fault("collector.clock", "no day is dropped", ["cause": clock], level: .error)
      } else {
        options.log.faultEnded("collector.clock", "days are dropped again")
      }
      note(isOverLag: isLate && options.onLag == .refuse)
      options.log.faultEnded("collector.upkeep", "days are made and dropped again")
      return isMoreDue
    } catch {
      options.log.fault("collector.upkeep", "days can't be made or dropped", ["cause": error.description])
      throw .unavailable(error.description)
    }
  }

  private func note(isOverLag now: Bool) {
    let before = isOverLag
    isOverLag = now
    if now {
      health.withLock { $0.failure = LagPolicy.cause }
      options.log.fault("collector.store", "packets are refused", ["cause": LagPolicy.cause], level: .error)
    } else if before {
      succeeded()
    }
  }

  // MARK: Failures

  private func succeeded() {
    guard failure != nil else { return }
    health.withLock { $0.failure = nil }
    options.log.faultEnded("collector.store", "packets are stored again")
  }

  private func failed(_ refusal: PostgreSQLSetup.Refusal) -> StoreFailure {
    if case .failed(let error) = refusal, error.isRejection { return .rejected(error.description) }
    health.withLock { $0.failure = refusal.description }
    options.log.fault("collector.store", "packets can't be stored", ["cause": refusal.description], level: .error)
    // With a connection the next group is a try; without one, one task tries for all.
    if connection == nil, recovery == nil, !isClosed { recover() }
    return .unavailable(refusal.description)
  }

  private func recover() {
    guard recovery == nil, !isClosed else { return }
    let probe = PostgreSQLProbe(setup)
    let time = options.time
    recovery = Task {
      var pause: Duration = .milliseconds(100)
      while !Task.isCancelled {
        if let cause = await probe.failure() { note(cause) } else { break }
        do { try await time.sleep(for: pause) } catch { return }  // the collector stops
        pause = min(.seconds(5), pause * 2)
      }
      recovered()
    }
  }

  private func note(_ cause: String) { health.withLock { $0.failure = cause } }

  private func recovered() {
    recovery = nil
    if !isClosed { succeeded() }
  }
}
