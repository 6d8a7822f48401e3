import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite

/// The remote configuration that each device reports when it asks for a new one: the one that it has, those that it
/// refused or took back, and why. Kept for 30 days, for all replicas.
///
/// Questions are written down together, a second after the first one: those of the last second before a crash come again with
/// the devices' next questions.
actor DeviceRegister {
  private struct Noted {
    var question: ConfigurationQuestion
    /// A holder of the device's key asked.
    var isProven: Bool
    var askedTime: Int64
    var givenTime: Int64?

    func mayReplace(_ row: SQLRow<Column>) -> Bool { isProven || row.int64(.isProven) == 0 }
  }

  private enum Column: String, SQLiteColumn {
    case device, askedTime, updateTime, version, lastApplied, lastFailed, reason, givenTime, isProven
  }

  private enum CountColumn: String, SQLiteColumn {
    case version
    case devices = "count(*)"
    case failed = "count(last_failed)"
  }

  private static let kept: Int64 = 30 * 86_400_000
  /// Names come from senders: a bounded number of them is kept.
  private static let devicesMax = 100_000
  /// Questions that are written down at once, and those that wait for it at most.
  private static let (groupMax, waitingMax) = (200, 10_000)

  private let executor = DispatchQueueExecutor(label: "prism.collector.devices")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let session: FleetSession
  private let time: any TimeSource
  private let log: Logger
  private var waiting: [String: Noted] = [:]
  private var writing: Task<Void, Never>?
  private var prunedAt: Int64 = 0

  init(in database: FleetDatabase, time: any TimeSource, log: Logger) {
    (session, self.time, self.log) = (FleetSession(database), time, log)
  }

  /// Never fails: a device gets its answer whether it can be written down or not.
  /// - Parameter isProven: a holder of the device's key asked. Others change nothing that such a one said before.
  /// - Parameter given: the `updateTime` of the answer; nil: the device asks again.
  func asked(_ question: ConfigurationQuestion, isProven: Bool, given: Int64?) {
    let before = waiting[question.deviceID]
    guard waiting.count < Self.waitingMax || before != nil, isProven || before?.isProven != true else { return }
    waiting[question.deviceID] = Noted(
      question: question, isProven: isProven, askedTime: time.unixMilliseconds,
      givenTime: given ?? question.updateTime)
    guard writing == nil else { return }
    writing = Task {
      try? await time.sleep(for: .seconds(1))  // cancelled only with the process
      writing = nil
      write()
    }
  }

  /// Writes down what was asked; it stays for the next time where it can't be written.
  private func write() {
    while !waiting.isEmpty {
      let group = Array(waiting.values.prefix(Self.groupMax))
      do throws(StoreFailure) {
        let known = try session.write { statements in
          try prune(statements)
          return try write(group, statements)
        }
        for noted in group {
          waiting[noted.question.deviceID] = nil
          warn(of: noted, before: known[noted.question.deviceID])
        }
        log.faultEnded("collector.devices", "what devices say is written down again")
      } catch {
        return log.fault("collector.devices", "what devices say can't be written down", ["cause": error.description])
      }
    }
  }

  /// - Returns: what the devices said before.
  private func write(_ group: [Noted], _ statements: SQLStatements) throws -> [String: SQLRow<Column>] {
    let known = try statements.rows(
      of: Column.self, from: "configured_devices", key: ["device"], in: group.map { [$0.question.deviceID] },
      where: "asked_time >= $1", [0]
    ).reduce(into: [:]) { $0[$1.text(.device)] = $1 }
    var free = Self.devicesMax - Int(try statements.integer("SELECT count(*) FROM configured_devices") ?? 0)
    var rows: [[any SQLConvertible]] = []
    for noted in group {
      if let before = known[noted.question.deviceID] {
        guard noted.mayReplace(before) else { continue }
      } else {
        guard free > 0 else { continue }
        free -= 1
      }
      let question = noted.question
      rows.append([
        question.deviceID, noted.askedTime, question.updateTime, question.version, question.lastApplied,
        question.lastFailed, question.reason, noted.givenTime, noted.isProven,
      ])
    }
    try statements.insert(
      Column.self, into: "configured_devices", rows: rows, onConflict: Column.replacing(.device))
    return known
  }

  private func warn(of noted: Noted, before: SQLRow<Column>?) {
    let question = noted.question
    guard let failed = question.lastFailed, before.map({ noted.mayReplace($0) }) ?? true,
      before?.string(.lastFailed) != failed || before?.string(.reason) != question.reason
    else { return }
    log.warning(
      "a device does not take its remote configuration",
      ["device": question.deviceID, "number": failed, "reason": question.reason ?? ""])
  }

  /// Once an hour.
  private func prune(_ statements: SQLStatements) throws {
    let now = time.unixMilliseconds
    guard now - prunedAt > 3_600_000 else { return }
    try statements.run("DELETE FROM configured_devices WHERE asked_time < $1", [now - Self.kept])
    prunedAt = now
  }

  // MARK: Reading

  /// How many devices asked, and how many of them refused or took back what they were offered last.
  func figures() throws(CollectorRefusal) -> (devices: Int, failed: Int) {
    try read { statements in
      let counts = try statements.rows(of: CountColumn.self, "FROM configured_devices GROUP BY version")
      return (counts.reduce(0) { $0 + $1.int(.devices) }, counts.reduce(0) { $0 + $1.int(.failed) })
    }
  }

  /// A page of devices by name. - Throws: 503 when the database can't be read.
  func page(after: String, failedOnly: Bool, limit: Int) throws(CollectorRefusal) -> [JSONValue] {
    let condition = failedOnly ? "AND last_failed IS NOT NULL" : ""
    return try read {
      try $0.rows(
        of: Column.self, "FROM configured_devices WHERE device > $1 \(condition) ORDER BY device LIMIT $2",
        [after, limit]
      ).map(Self.json)
    }
  }

  /// nil: the device did not ask. - Throws: 503 when the database can't be read.
  func entry(of device: String) throws(CollectorRefusal) -> JSONValue? {
    try read {
      try $0.first(of: Column.self, "FROM configured_devices WHERE device = $1", [device]).map(Self.json)
    }
  }

  /// How many devices have which version, the newest first. - Throws: 503 when the database can't be read.
  func versions() throws(CollectorRefusal) -> [JSONValue] {
    try read { statements in
      try statements.rows(
        of: CountColumn.self,
        "FROM configured_devices GROUP BY version ORDER BY coalesce(version, -1) DESC LIMIT 100"
      ).map {
        JSONValue(["version": $0.integer(.version), "devices": $0.int64(.devices), "failed": $0.int64(.failed)])
      }
    }
  }

  /// How many devices a rollout is for, got it, said that they have it, and refused something since they got it.
  /// - Throws: 503 when the database can't be read.
  func counts(
    of rollout: Rollout, among chosen: DeviceChoice?
  ) throws(CollectorRefusal) -> (chosen: Int, given: Int, confirmed: Int, failed: Int) {
    try read { statements in
      var counts = (chosen: 0, given: 0, confirmed: 0, failed: 0)
      try forEachDevice(statements) { row in
        counts.chosen += rollout.event.reach.includes(row.text(.device), of: rollout.id, among: chosen) ? 1 : 0
        guard rollout.marks(row.integer(.givenTime)) else { return }
        counts.given += 1
        counts.confirmed += rollout.marks(row.integer(.updateTime)) ? 1 : 0
        counts.failed += row.string(.lastFailed) == nil ? 0 : 1
      }
      return counts
    }
  }

  /// The devices that got what is rolled out. - Throws: 503 when the database can't be read.
  func holders(of rollout: Rollout) throws(CollectorRefusal) -> Set<String> {
    try read { statements in
      var holders: Set<String> = []
      try forEachDevice(statements) { row in
        if rollout.marks(row.integer(.givenTime)) { holders.insert(row.text(.device)) }
      }
      return holders
    }
  }

  /// Reads some at a time: there may be 100,000.
  private func forEachDevice(_ statements: SQLStatements, _ body: (SQLRow<Column>) -> Void) throws {
    var last = ""
    while true {
      let rows = try statements.rows(
        of: Column.self, "FROM configured_devices WHERE device > $1 ORDER BY device LIMIT 1000", [last])
      rows.forEach(body)
      guard let end = rows.last else { return }
      last = end.text(.device)
    }
  }

  private func read<Result>(
    _ body: (SQLStatements) throws -> Result
  ) throws(CollectorRefusal) -> Result {
    write()
    do throws(StoreFailure) { return try session.read(body) } catch {
      throw CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)
    }
  }

  private static func json(_ row: SQLRow<Column>) -> JSONValue {
    JSONValue([
      "device": row.string(.device), "askedTime": row.integer(.askedTime), "updateTime": row.integer(.updateTime),
      "version": row.integer(.version), "lastApplied": row.integer(.lastApplied),
      "lastFailed": row.string(.lastFailed), "reason": row.string(.reason), "givenTime": row.integer(.givenTime),
      "isProven": row.int64(.isProven) != 0,
    ])
  }
}

extension ConfigurationQuestion {
  /// - Throws: 400 if the request is no question.
  init(_ request: HTTPRequest) throws(CollectorRefusal) {
    guard let device = request.parameter("deviceId"), DeviceID.isValid(device)
    else { throw CollectorRefusal(400, "deviceId must be 1 to 128 visible ASCII characters") }
    self.init(deviceID: device)
    updateTime = try request.number("updateTime", in: 0...Int64.max)
    version = try request.number("version", in: 0...Int64.max)
    lastApplied = try request.number("lastApplied", in: 0...Int64.max)
    (lastFailed, reason) = (request.parameter("lastFailed"), request.parameter("reason"))
  }

  /// With texts that do no harm where they are shown.
  var shown: Self {
    var shown = self
    (shown.lastFailed, shown.reason) = (lastFailed?.shownFromOutside, reason?.shownFromOutside)
    return shown
  }
}
