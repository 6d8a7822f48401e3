import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismSQL

/// The remote configuration that the collector serves: what its database has, which a folder of namespace files changes.
/// Replicas share the database, so that they answer alike; whose folder changed last has the word.
actor RemoteConfigurationStore {
  /// An answer, and what became of the question: a metric's label.
  struct Answer: Sendable {
    var body: [UInt8]
    var outcome: String
    /// The count that the device got; nil: it asks again.
    var updateTime: Int64?
  }

  /// How long a signed answer may be taken. A device whose clock is further ahead takes no answer.
  static let validity: Int64 = 86_400_000
  /// The whole answer is signed again after this.
  private static let wholeKept: Int64 = 3_600_000
  /// Between two looks at what other replicas changed, and after a failure of the database.
  private static let (interval, retryInterval) = (Duration.seconds(1), Duration.seconds(5))
  /// Between two versions for devices that a rollout chooses later: a device that asks in between gets it with its next question.
  private static let renewalInterval = Duration.seconds(10)

  private let executor = DispatchQueueExecutor(label: "prism.collector.remote")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let key: SigningKey?
  private let session: FleetSession
  let time: any TimeSource
  let log: Logger
  private var folder: RemoteFolderState
  private var nextLook: Duration
  private var nextRenewal: Duration = .zero
  /// As it was read last; nil: the database was not reached yet.
  private(set) var configuration: ServedConfiguration?
  /// The answers to the question for everything, by their time.
  private var whole: [Int64: (signedTime: Int64, body: [UInt8])] = [:]
  /// Of the folder as it is now; what was sound before is served.
  private(set) var faults = 0

  /// - Parameter state: a folder that this replica alone has.
  /// - Throws: `ConfigurationFaults` of the files, `StoreFailure` of a database of this collector alone.
  init(
    _ options: CollectorOptions.Remote, state: String, in database: FleetDatabase, time: any TimeSource, log: Logger
  ) throws {
    (key, self.time, self.log, nextLook) = (options.key, time, log, time.uptime)
    session = FleetSession(database)
    folder = RemoteFolderState(folder: options.folder, state: state, isShared: database.isShared)
    _ = folder.hasChanged(time)
    let files = try RemoteFolder.read(options.folder)
    do {
      let taken = try Self.take(files, &folder, session, log, now: time.unixMilliseconds)
      configuration = taken
      folder.judge(taken, log)
    } catch {
      folder.forget()
      guard database.isShared else { throw error }
      nextLook = time.uptime + Self.retryInterval
      log.fault("collector.remote", "remote configuration can't be read; tried again", ["cause": "\(error)"])
    }
  }

  // MARK: Answers

  /// The version that packets' answers name; nil: it is not known yet.
  func version() -> Int64? {
    refresh()
    return configuration?.version
  }

  var rollouts: RolloutHistory { configuration?.rollouts ?? RolloutHistory() }

  /// The configuration that is served, as of now. - Throws: 503 while the database was not read.
  func current() throws(CollectorRefusal) -> ServedConfiguration {
    refresh()
    guard let configuration else {
      throw CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)
    }
    return configuration
  }

  /// - Parameters:
  ///   - since: the time that the device has; nil: it asks for everything.
  ///   - chosen: the devices of the rollout's expression.
  /// - Throws: 500 when there is more than an answer may hold, 503 when the database can't be read.
  func answer(
    to device: String, since: Int64?, among chosen: DeviceChoice? = nil
  ) throws(CollectorRefusal) -> Answer {
    var configuration = try current()
    let held = since.flatMap { configuration.rollouts.held(at: $0) }
    var wanted = configuration.rollouts.active.flatMap {
      $0.isFor(device, holds: held?.id == $0.id, among: chosen) ? $0 : nil
    }
    // Devices take one content under a version that is signed: one that is chosen later needs a version of its own.
    if key != nil, let since, since >= configuration.updateTime, wanted?.id != held?.id {
      if let renewed = try renew() { configuration = renewed } else { wanted = held }
    }
    let time = configuration.updateTime + (wanted == nil ? 0 : 1)
    guard let since else {
      return Answer(body: try wholeAnswer(configuration, wanted, time), outcome: "whole", updateTime: time)
    }
    // A time that this collector never gave, or of which not all is known any more.
    guard since <= configuration.updateTime + (held == nil ? 0 : 1), since >= configuration.forgottenTime,
      let changes = configuration.changes(since: since, from: held, to: wanted)
    else {
      let body = try seal([], isFull: true, since: since, updateTime: configuration.updateTime)
      return Answer(body: body, outcome: "again", updateTime: nil)
    }
    let body = try seal(changes, isFull: false, since: since, updateTime: time)
    return Answer(body: body, outcome: changes.isEmpty ? "unchanged" : "changes", updateTime: time)
  }

  /// The same under a new version, of which the whole fleet hears. - Returns: nil: there was one just now.
  private func renew() throws(CollectorRefusal) -> ServedConfiguration? {
    guard time.uptime >= nextRenewal else { return nil }
    nextRenewal = time.uptime + Self.renewalInterval
    let now = time.unixMilliseconds
    return try update { configuration, statements in
      try configuration.renew(now: now, to: statements)
      return .success(configuration)
    }
  }

  private func wholeAnswer(
    _ configuration: ServedConfiguration, _ wanted: Rollout?, _ time: Int64
  ) throws(CollectorRefusal) -> [UInt8] {
    let now = self.time.unixMilliseconds
    if let whole = whole[time], abs(now - whole.signedTime) < Self.wholeKept { return whole.body }
    let body = try seal(configuration.whole(with: wanted), isFull: true, updateTime: time)
    whole = whole.filter { $0.key >= configuration.updateTime }
    whole[time] = (now, body)
    return body
  }

  private func seal(
    _ entries: [RemoteNamespace], isFull: Bool, since: Int64? = nil, updateTime: Int64
  ) throws(CollectorRefusal) -> [UInt8] {
    let now = key == nil ? nil : time.unixMilliseconds
    let document = RemoteDocument(
      namespaces: entries, updateTime: updateTime, isFull: isFull, version: configuration?.version, since: since,
      issueTime: now, expireTime: now.map { $0 + Self.validity })
    do { return try RemoteEnvelope.seal(document.json.bytes, key: key) } catch {
      log.fault(
        "collector.remote.seal", "remote configuration can't be sent", ["cause": error.rawValue], level: .error)
      throw CollectorRefusal(500, "remote configuration can't be sent: \(error.rawValue)")
    }
  }

  // MARK: Changes

  /// Takes over what changed in the folder, all of it or, with any fault, nothing; and what other replicas changed.
  func refresh() {
    guard time.uptime >= nextLook else { return }
    nextLook = time.uptime + Self.interval
    do {
      if folder.hasChanged(time) {
        let files = try RemoteFolder.read(folder.path)
        folder.lookAtNext(configuration?.updateTime ?? 0)
        take(try Self.take(files, &folder, session, log, now: time.unixMilliseconds))
        faults = 0
      } else if folder.isShared {
        let version = configuration?.version
        let newer = try session.read { statements in
          try ServedConfiguration.version(statements) == version
            ? nil : try ServedConfiguration(statements)
        }
        if let newer { take(newer) }
      }
      log.faultEnded("collector.remote", "remote configuration is read again")
    } catch let refused as ConfigurationFaults {
      folder.forget()
      if faults != refused.faults.count {
        for fault in refused.faults { log.error("remote configuration was not taken", ["fault": fault.description]) }
      }
      faults = refused.faults.count
    } catch {
      folder.forget()
      nextLook = time.uptime + Self.retryInterval
      log.fault("collector.remote", "remote configuration can't be taken over", ["cause": "\(error)"], level: .error)
    }
  }

  private func take(_ newer: ServedConfiguration) {
    if newer.version != configuration?.version {
      whole = [:]
      log.info(
        "remote configuration changed", ["version": String(newer.version), "updateTime": String(newer.updateTime)])
    }
    configuration = newer
    folder.judge(newer, log)
  }

  /// Ends the rollout, too, once all of it is served.
  private static func take(
    _ files: [RemoteNamespace], _ folder: inout RemoteFolderState, _ session: FleetSession, _ log: Logger, now: Int64
  ) throws(StoreFailure) -> ServedConfiguration {
    folder.files = files
    let state = folder
    let configuration = try session.write { statements in
      var configuration = try ServedConfiguration(locking: statements)
      if state.mayChange(configuration) {
        try configuration.take(configuration.difference(from: files), now: now, to: statements)
      }
      if let active = configuration.rollouts.active,
        active.entries.allSatisfy({ entry in
          configuration.has(entry)
            || state.leftNext(entry.name).map { configuration.hasChanged(entry.name, since: max($0, active.begin)) }
              ?? false
        })
      {
        var event = active.event
        (event.state, event.who) = (.done, "")
        try configuration.add(event, nil, now: now, to: statements)
        log.info("a rollout is done: the folder has its files, or newer ones", ["rollout": String(active.id)])
      }
      return configuration
    }
    folder.remember()
    return configuration
  }

  /// Changes what is served, in one transaction, by what all replicas have.
  /// - Throws: `refused` as it is, 503 when the database can't be written.
  func update<Result>(
    _ body: (inout ServedConfiguration, SQLStatements) throws -> Swift.Result<Result, CollectorRefusal>
  ) throws(CollectorRefusal) -> Result {
    refresh()
    let outcome: Swift.Result<Result, CollectorRefusal>
    do throws(StoreFailure) {
      let (found, newer) = try session.write { statements in
        var configuration = try ServedConfiguration(locking: statements)
        return (try body(&configuration, statements), configuration)
      }
      take(newer)
      outcome = found
    } catch {
      log.fault(
        "collector.rollout", "a rollout can't be changed", ["cause": error.description], level: .error)
      throw CollectorRefusal(503, "the collector's database can't be written", retryAfterSeconds: 5)
    }
    return try outcome.get()
  }

  /// The namespaces that are served, each with its keys and when it changed. - Throws: 503 when the database can't be read.
  func served() throws(CollectorRefusal) -> [JSONValue] {
    try current().served.prefix(ServedConfiguration.changesMax).map { entry in
      JSONValue([
        "namespace": entry.namespace.name.text, "changedTime": entry.updateTime, "entry": entry.namespace.json,
      ])
    }
  }

  /// The entries of `next/` that differ from what is served, and the faults there.
  func candidate() throws(CollectorRefusal) -> (entries: [RemoteNamespace], faults: [String]) {
    folder.candidate(try current())
  }
}
