import Dispatch
import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQLite

/// The remote configuration that each device reports when it asks for a new one: the one that it has, those that it
/// refused or took back, and why. Kept in `devices.db` for 30 days.
actor DeviceRegister {
  /// One question, as it came.
  struct Question: Sendable, Equatable {
    var device: String
    var updateTime: Int64?
    var version: Int64?
    var lastApplied: Int64?
    /// A number, or `unreadable`.
    var lastFailed: String?
    var reason: String?
  }

  private static let schema = """
    CREATE TABLE IF NOT EXISTS devices (
      device TEXT PRIMARY KEY, asked_time INTEGER NOT NULL, update_time INTEGER, version INTEGER, last_applied INTEGER,
      last_failed TEXT, reason TEXT, given_time INTEGER) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS devices_time ON devices (asked_time);
    """
  private static let kept: Int64 = 30 * 86_400_000
  /// Names come from senders: a bounded number of them is kept.
  private static let devicesMax = 100_000

  private let executor = DispatchQueueExecutor(label: "prism.collector.devices")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let connection: SQLiteConnection
  private let find: SQLiteStatement, replace: SQLiteStatement
  private let time: any TimeSource
  private let log: Logger
  private var prunedAt: Int64 = 0
  private(set) var devices = 0
  /// Those that refused or took back what they were offered last.
  private(set) var failed = 0

  init(state: String, time: any TimeSource, log: Logger) throws(SQLiteError) {
    (self.time, self.log) = (time, log)
    connection = try SQLiteConnection(.init(path: state + "/devices.db"))
    // A question that a crash loses is repeated with the device's next question.
    try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
    try connection.execute(Self.schema)
    // A database of an earlier version.
    try connection.addMissingColumn("given_time", "INTEGER", to: "devices")
    find = try connection.prepare("SELECT \(Column.list) FROM devices WHERE device = :device")
    replace = try connection.prepare(Entry.insert(into: "devices", "OR REPLACE"))
    devices = Int(try connection.firstInt("SELECT count(*) FROM devices") ?? 0)
    failed = Int(try connection.firstInt("SELECT count(*) FROM devices WHERE last_failed IS NOT NULL") ?? 0)
  }

  /// Never fails: a device gets its answer whether it can be written down or not.
  /// - Parameter given: the `updateTime` of the answer; nil: the device asks again.
  func asked(_ question: Question, given: Int64?) {
    do throws(SQLiteError) {
      try prune()
      let known = try reasonBefore(question.device)
      guard known != nil || devices < Self.devicesMax else { return }
      try write(question, given)
      if known == nil { devices += 1 }
      failed += (question.lastFailed == nil ? 0 : 1) - (known?.lastFailed == nil ? 0 : 1)
      if question.lastFailed != nil, known?.lastFailed != question.lastFailed || known?.reason != question.reason {
        log.warning(
          "a device does not take its remote configuration",
          ["device": question.device, "number": question.lastFailed ?? "", "reason": question.reason ?? ""])
      }
      log.faultEnded("collector.devices", "what devices say is written down again")
    } catch {
      log.fault("collector.devices", "what devices say can't be written down", ["cause": error.description])
    }
  }

  private func reasonBefore(_ device: String) throws(SQLiteError) -> (lastFailed: String?, reason: String?)? {
    find.bind(":device", device)
    return try find.first(of: Column.self) { ($0.string(.lastFailed), $0.string(.reason)) }
  }

  private enum Column: String, SQLiteColumn {
    case device
    case askedTime = "asked_time"
    case updateTime = "update_time"
    case version
    case lastApplied = "last_applied"
    case lastFailed = "last_failed"
    case reason
    case givenTime = "given_time"
  }

  private struct Entry: SQLiteRecord {
    typealias Column = DeviceRegister.Column
    let question: Question
    let askedTime: Int64
    let givenTime: Int64?

    func bind(to insert: SQLiteInsert<Column>) {
      insert.bind(.device, question.device)
      insert.bind(.askedTime, askedTime)
      insert.bind(.updateTime, question.updateTime)
      insert.bind(.version, question.version)
      insert.bind(.lastApplied, question.lastApplied)
      insert.bind(.lastFailed, question.lastFailed)
      insert.bind(.reason, question.reason)
      insert.bind(.givenTime, givenTime)
    }
  }

  private func write(_ question: Question, _ given: Int64?) throws(SQLiteError) {
    try replace.run(
      inserting: Entry(question: question, askedTime: time.unixMilliseconds, givenTime: given ?? question.updateTime))
  }

  /// Once an hour.
  private func prune() throws(SQLiteError) {
    let now = time.unixMilliseconds
    guard now - prunedAt > 3_600_000 else { return }
    prunedAt = now
    try connection.execute("DELETE FROM devices WHERE asked_time < \(now - Self.kept)")
    devices = Int(try connection.firstInt("SELECT count(*) FROM devices") ?? 0)
    failed = Int(try connection.firstInt("SELECT count(*) FROM devices WHERE last_failed IS NOT NULL") ?? 0)
  }

  /// A page of devices by name. - Throws: 503 when the database can't be read.
  func page(after: String, failedOnly: Bool, limit: Int) throws(CollectorRefusal) -> [JSONValue] {
    do throws(SQLiteError) {
      let condition = failedOnly ? "AND last_failed IS NOT NULL" : ""
      let statement = try connection.prepare(
        "SELECT \(Column.list) FROM devices WHERE device > :after \(condition) ORDER BY device LIMIT \(limit)")
      statement.bind(":after", after)
      var result: [JSONValue] = []
      try statement.forEachRow(of: Column.self) { result.append(Self.json($0)) }
      return result
    } catch {
      throw CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)
    }
  }

  /// nil: the device did not ask. - Throws: 503 when the database can't be read.
  func entry(of device: String) throws(CollectorRefusal) -> JSONValue? {
    do throws(SQLiteError) {
      find.bind(":device", device)
      return try find.first(of: Column.self) { Self.json($0) }
    } catch {
      throw CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)
    }
  }

  private enum VersionColumn: String, SQLiteColumn {
    case version
    case devices = "count(*)"
    case failed = "count(last_failed)"
  }

  /// How many devices have which version, the newest first. - Throws: 503 when the database can't be read.
  func versions() throws(CollectorRefusal) -> [JSONValue] {
    do throws(SQLiteError) {
      let statement = try connection.prepare(
        "SELECT \(VersionColumn.list) FROM devices GROUP BY version ORDER BY version DESC LIMIT 100")
      var versions: [JSONValue] = []
      try statement.forEachRow(of: VersionColumn.self) { row in
        versions.append([
          "version": row.integer(.version).map { .int($0) } ?? .null, "devices": .int(row.int64(.devices)),
          "failed": .int(row.int64(.failed)),
        ])
      }
      return versions
    } catch {
      throw CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)
    }
  }

  private enum RolloutColumn: String, SQLiteColumn {
    case device
    case updateTime = "update_time"
    case givenTime = "given_time"
    case lastFailed = "last_failed"
  }

  /// How many devices a rollout is for, got it, said that they have it, and refused something since they got it.
  /// - Throws: 503 when the database can't be read.
  func counts(of rollout: Rollout) throws(CollectorRefusal) -> (chosen: Int, given: Int, confirmed: Int, failed: Int) {
    do throws(SQLiteError) {
      var counts = (chosen: 0, given: 0, confirmed: 0, failed: 0)
      try connection.prepare("SELECT \(RolloutColumn.list) FROM devices").forEachRow(of: RolloutColumn.self) { row in
        counts.chosen += rollout.event.reach.includes(row.text(.device), of: rollout.id) ? 1 : 0
        guard rollout.marks(row.integer(.givenTime)) else { return }
        counts.given += 1
        counts.confirmed += rollout.marks(row.integer(.updateTime)) ? 1 : 0
        counts.failed += row.isNull(.lastFailed) ? 0 : 1
      }
      return counts
    } catch {
      throw CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)
    }
  }

  private static func json(_ row: SQLiteRow<Column>) -> JSONValue {
    func number(_ column: Column) -> JSONValue { row.integer(column).map { .int($0) } ?? .null }
    func text(_ column: Column) -> JSONValue { row.isNull(column) ? .null : .string(row.text(column)) }
    return [
      "device": text(.device), "askedTime": number(.askedTime), "updateTime": number(.updateTime),
      "version": number(.version), "lastApplied": number(.lastApplied), "lastFailed": text(.lastFailed),
      "reason": text(.reason), "givenTime": number(.givenTime),
    ]
  }
}

extension DeviceRegister.Question {
  /// - Throws: 400 if the request is no question.
  init(_ request: HTTPRequest) throws(CollectorRefusal) {
    guard let device = request.parameter("deviceId"), DeviceID.isValid(device)
    else { throw CollectorRefusal(400, "deviceId must be 1 to 128 visible ASCII characters") }
    self.device = device
    updateTime = try Self.number(request, "updateTime")
    version = try Self.number(request, "version")
    lastApplied = try Self.number(request, "lastApplied")
    lastFailed = request.parameter("lastFailed")?.shownFromOutside
    reason = request.parameter("reason")?.shownFromOutside
  }

  private static func number(_ request: HTTPRequest, _ name: String) throws(CollectorRefusal) -> Int64? {
    guard let text = request.parameter(name) else { return nil }
    guard let number = Int64(text), number >= 0 else {
      throw CollectorRefusal(400, "\(name) must be a whole number, 0 or more")
    }
    return number
  }
}
