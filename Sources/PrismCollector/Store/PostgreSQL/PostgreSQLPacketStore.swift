import Glibc
import PrismBase
import PrismConfig
import PrismPacket
import PrismSQL

/// Packets and reports in PostgreSQL, which any number of collectors share.
///
/// A commit that is not known to be at rest (the connection was lost, the deadline passed, no standby confirmed it) is a
/// failure, and its packets come again. Until the database commits again, packets are refused at once: each group that
/// waits for a missing standby would hold a connection and its streams' rows.
actor PostgreSQLPacketStore: ReadStore {
  struct Options: Sendable {
    var target: PostgreSQLTarget
    var retention = Retention()
    var quotas = Quotas()
    /// Of one group, from its begin to its commit.
    var commitDeadline: Duration = .seconds(10)
    var time: any TimeSource = SystemTime()
    /// Of the state folder: its files are of one collector, also where all else is in the database.
    var lock: StateLock?
    var log: Logger
  }

  private static let attemptsMax = 8

  private let executor = DispatchQueueExecutor(label: "prism.collector.store")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  let options: Options
  private let setup: PostgreSQLSetup
  let readers: StoreReaders
  /// Of changes of records.
  let writing: StoreReader
  private let upkeep: PostgreSQLUpkeep
  let health: StoreHealth
  private var connection: PostgreSQLConnection?
  private let packer: RestPacker
  private var recovery: Task<Void, Never>?
  private var isClosed = false
  private var isOverLag = false

  nonisolated var recheckInterval: Duration? { .milliseconds(500) }
  nonisolated var quotas: Quotas { options.quotas }

  /// Connects and makes the tables in an empty schema. A database that is away, starting or full of connections is
  /// waited for in the background.
  /// - Throws: what waiting does not change: a newer schema, a role without rights.
  init(_ options: Options) throws(PostgreSQLSetup.Refusal) {
    (self.options, health) = (options, StoreHealth(options.log))
    do throws(PacketError) { packer = try RestPacker() } catch {
      throw .failed(PostgreSQLError(kind: .lost, message: "there is no memory to pack reports"))
    }
    let setup = PostgreSQLSetup(target: options.target, deadline: options.commitDeadline)
    var packets = setup
    packets.idleMax = .seconds(4)
    self.setup = packets
    readers = StoreReaders(
      reports: PostgreSQLSetup(target: options.target, deadline: .seconds(30)).byIndex,
      page: PostgreSQLSetup(target: options.target, deadline: .seconds(5)).byIndex, records: setup)
    writing = StoreReader(setup, label: "writing")
    upkeep = PostgreSQLUpkeep(setup, options, time: options.time)
    do throws(PostgreSQLSetup.Refusal) { connection = try packets.connect() } catch {
      guard error.isTemporary else { throw error }
      health.fails(error.description, "the database is not reached")
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
    options.lock?.release()
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
      health.count { $0.add(packets: group.count, lasted: options.time.uptime - started) }
      health.succeeds(Self.succeeded)
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
        var transaction = GroupTransaction(connection, group, options.quotas, by: deadline, packer)
        let outcomes = try transaction.run()
        health.count { $0.mark = transaction.mark }
        return outcomes
      } catch {
        if error.endsConnection { self.connection = nil }
        // An error that ends the connection leaves the outcome open; after all others nothing is committed.
        guard !error.endsConnection, error.isTransient || error.isDayMissing, attempt < Self.attemptsMax else {
          throw .failed(error)
        }
        health.count { $0.retries += 1 }
        if error.isDayMissing { try addDays(connection, deadline) } else { usleep(.random(in: 1000...20_000)) }
      }
    }
  }

  private func addDays(
    _ connection: PostgreSQLConnection, _ deadline: Deadline
  ) throws(PostgreSQLSetup.Refusal) {
    do throws(PostgreSQLError) {
      try connection.transaction(by: deadline) { () throws(PostgreSQLError) in
        _ = try connection.query("SELECT pg_advisory_xact_lock(\(PostgreSQLSchema.Lock.upkeep.key))", by: deadline)
        try PostgreSQLError.only { try PostgreSQLDays(statements: connection.statements(by: deadline)).add() }
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
    do {
      let isMoreDue = try await upkeep.slice()
      let (skipped, ahead) = (await upkeep.skipped, await upkeep.clockAheadSeconds)
      health.count { ($0.skipped, $0.clockAheadSeconds) = (skipped, ahead) }
      let (isLate, clock) = (await upkeep.isOverLag, await upkeep.clockWarning)
      health.warn((clock.map { [$0] } ?? []) + (isLate && options.retention.onLag == .hold ? [LagPolicy.warning] : []))
      if let clock {
        options.log.fault("collector.clock", "no day is dropped", ["cause": clock], level: .error)
      } else {
        options.log.faultEnded("collector.clock", "days are dropped again")
      }
      note(isOverLag: isLate && options.retention.onLag == .refuse)
      options.log.faultEnded("collector.upkeep", "days are made and dropped again")
      return isMoreDue
    } catch {
      options.log.fault("collector.upkeep", "days can't be made or dropped", ["cause": "\(error)"])
      health.warn(["days can't be made or dropped, and without a day no packet is stored: \(error)"])
      throw .unavailable("\(error)")
    }
  }

  private func note(isOverLag now: Bool) {
    let before = isOverLag
    isOverLag = now
    if now {
      health.fails(LagPolicy.cause, "packets are refused")
    } else if before {
      health.succeeds(Self.succeeded)
    }
  }

  // MARK: Failures

  private static let succeeded = "packets are stored again"

  private func failed(_ refusal: PostgreSQLSetup.Refusal) -> StoreFailure {
    if case .failed(let error) = refusal, error.isRejection { return .rejected(error.description) }
    health.fails(refusal.description, "packets can't be stored")
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
        if let cause = await probe.failure() { health.fails(cause) } else { break }
        do { try await time.sleep(for: pause) } catch { return }  // the collector stops
        pause = min(.seconds(5), pause * 2)
      }
      recovered()
    }
  }

  private func recovered() {
    recovery = nil
    if !isClosed { health.succeeds(Self.succeeded) }
  }
}
