import Dispatch
import Glibc
import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismSQLite

/// The remote configuration that the collector serves: a folder of namespace files, and when each was changed last. The
/// times are kept in `remote.db`, so that they go on rising over restarts, and removed files are known to be gone.
///
/// The version rises by one with every change, independent of the clock: devices refuse one that jumps. It begins with
/// the minutes since 1970, so that it still rises after `remote.db` was lost.
actor RemoteConfigurationStore {
  /// An answer, and what became of the question: a metric's label.
  struct Answer: Sendable {
    var body: [UInt8]
    var outcome: String
    /// The count that the device got; nil: it asks again.
    var updateTime: Int64?
  }

  private static let schema = """
    CREATE TABLE IF NOT EXISTS entries (
      namespace TEXT PRIMARY KEY, entry TEXT NOT NULL, is_removed INTEGER NOT NULL, update_time INTEGER NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS entries_time ON entries (update_time);
    CREATE TABLE IF NOT EXISTS facts (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    """
  /// Changes of one answer. A device that is further behind gets an answer that makes it ask for everything.
  static let changesMax = 1000
  /// A removed file is forgotten after this. A device that asks about a time before it gets everything.
  private static let removedKept: Int64 = 90 * 86_400_000
  /// How long a signed answer may be taken. A device whose clock is further ahead takes no answer.
  static let validity: Int64 = 86_400_000
  /// The whole answer is signed again after this.
  private static let wholeKept: Int64 = 3_600_000

  private let executor = DispatchQueueExecutor(label: "prism.collector.remote")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let key: SigningKey?
  let connection: SQLiteConnection
  let time: any TimeSource
  let log: Logger
  /// The time of the newest change.
  var updateTime: Int64 = 0
  /// The number of the newest change.
  var number: Int64 = 0
  /// Removals up to this time are forgotten.
  var forgottenTime: Int64 = 0
  private(set) var watch: FolderWatch
  /// The answers to the question for everything, by `updateTime`.
  var whole: [Int64: (signedTime: Int64, body: [UInt8])] = [:]
  var rollouts: RolloutTable
  /// Of the folder as it is now; what was sound before is served.
  private(set) var faults = 0
  /// Of all replicas; nil: this is the only collector.
  var shared: RemoteVersions?

  /// - Parameter target: the database of all replicas; nil: this is the only collector.
  /// - Throws: `ConfigurationFaults` of the files, `SQLiteError`.
  init(
    _ options: CollectorOptions.Remote, state: String, sharedBy target: PostgreSQLTarget? = nil, time: any TimeSource,
    log: Logger
  ) throws {
    (key, self.time, self.log) = (options.key, time, log)
    connection = try SQLiteConnection(.init(path: state + "/remote.db"))
    try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    try connection.execute(Self.schema)
    rollouts = try RolloutTable(connection)
    watch = FolderWatch(folder: options.folder)
    _ = watch.hasChanged(uptime: time.uptime, unixMilliseconds: time.unixMilliseconds)
    let known = try connection.firstInt("SELECT value FROM facts WHERE key = 'update_time'")
    forgottenTime = try connection.firstInt("SELECT value FROM facts WHERE key = 'forgotten_time'") ?? 0
    let files = try RemoteFolder.read(options.folder)
    let (changed, removed) = try Self.difference(files, connection)
    updateTime = known ?? 0
    let knownNumber = try connection.firstInt("SELECT value FROM facts WHERE key = 'version'")
    shared = target.map { RemoteVersions($0) }
    // A new replica has no version of its own, if there are others. Without the database it begins one.
    let others = knownNumber == nil ? (try? shared?.newest()) : nil
    let isNew = others != nil
    number = knownNumber ?? (isNew ? -1 : time.unixMilliseconds / 60_000)
    let serves = try Self.serves(connection)
    watch.note(isEmpty: files.isEmpty && serves, to: log)
    guard !changed.isEmpty || !removed.isEmpty || known == nil || knownNumber == nil else { return }
    shared?.mustClaim = !isNew
    (updateTime, number) = (Self.count(after: updateTime, now: isNew ? 0 : time.unixMilliseconds), number + 1)
    try Self.write(changed, removed, at: updateTime, number: number, to: connection)
  }

  /// Even: a device that has what is rolled out gets the odd count behind it.
  static func count(after updateTime: Int64, now: Int64) -> Int64 { max(updateTime + 2, now) & ~1 }

  /// The version that packets' answers name.
  func version() -> Int64 {
    refresh()
    return number
  }

  /// - Parameter since: the time that the device has; nil: it asks for everything.
  /// - Throws: 500 when there is more than an answer may hold, 503 when the database can't be read.
  func answer(to device: String, since: Int64?) throws(CollectorRefusal) -> Answer {
    refresh()
    guard shared?.isBehind != true else {
      throw CollectorRefusal(
        503, "another collector serves newer remote configuration; the folder of this one is behind",
        retryAfterSeconds: 5)
    }
    let held = since.flatMap { rollouts.held(at: $0) }
    let wanted = rollouts.active.flatMap { $0.isFor(device, holds: held?.id == $0.id) ? $0 : nil }
    let time = updateTime + (wanted == nil ? 0 : 1)
    guard let since else { return Answer(body: try wholeAnswer(wanted, time), outcome: "whole", updateTime: time) }
    // A time that this collector never gave, or of which not all is known any more.
    guard since <= updateTime + (held == nil ? 0 : 1), since >= forgottenTime,
      let changes = try changes(since: since, from: held, to: wanted)
    else { return Answer(body: try askAgain(since), outcome: "again", updateTime: nil) }
    let body = try seal(document(changes, isFull: false, since: since, updateTime: time))
    return Answer(body: body, outcome: changes.isEmpty ? "unchanged" : "changes", updateTime: time)
  }

  /// The differences between the configuration of a device and the one that it is to have; nil: too many.
  private func changes(
    since: Int64, from held: Rollout?, to wanted: Rollout?
  ) throws(CollectorRefusal) -> [RemoteNamespace]? {
    let changed = try entries("WHERE update_time > \(since) ORDER BY namespace LIMIT \(Self.changesMax + 1)")
    guard changed.count <= Self.changesMax else { return nil }
    var changes = Dictionary(uniqueKeysWithValues: changed.map { ($0.name, $0) })
    if let held, held.id != wanted?.id {
      let names = held.entries.map { RemoteNamespace(name: $0.name, isRemoved: true, keys: []) }
      changes.merge(names.map { ($0.name, $0) }) { $1 }
      for entry in try entries("WHERE is_removed = 0 ORDER BY namespace") where changes[entry.name] != nil {
        changes[entry.name] = entry
      }
    }
    for entry in wanted?.entries ?? [] { changes[entry.name] = held?.id == wanted?.id ? nil : entry }
    guard changes.count <= Self.changesMax else { return nil }
    return changes.values.sorted { $0.name < $1.name }
  }

  private func wholeAnswer(_ wanted: Rollout?, _ time: Int64) throws(CollectorRefusal) -> [UInt8] {
    let now = self.time.unixMilliseconds
    if let whole = whole[time], abs(now - whole.signedTime) < Self.wholeKept { return whole.body }
    let names = Set(wanted?.entries.map(\.name) ?? [])
    let all = try entries("WHERE is_removed = 0 ORDER BY namespace").filter { !names.contains($0.name) }
    let shown = (all + (wanted?.entries ?? [])).sorted { $0.name < $1.name }
    let body = try seal(document(shown, isFull: true, updateTime: time))
    whole = whole.filter { $0.key >= updateTime }
    whole[time] = (now, body)
    return body
  }

  private func askAgain(_ since: Int64) throws(CollectorRefusal) -> [UInt8] {
    try seal(document([], isFull: true, since: since, updateTime: updateTime))
  }

  private func document(
    _ entries: [RemoteNamespace], isFull: Bool, since: Int64? = nil, updateTime: Int64
  ) -> RemoteDocument {
    let now = key == nil ? nil : time.unixMilliseconds
    return RemoteDocument(
      namespaces: entries, updateTime: updateTime, isFull: isFull, version: number, since: since, issueTime: now,
      expireTime: now.map { $0 + Self.validity })
  }

  private func seal(_ document: RemoteDocument) throws(CollectorRefusal) -> [UInt8] {
    do { return try RemoteEnvelope.seal(document.json.bytes, key: key) } catch {
      log.fault(
        "collector.remote.seal", "remote configuration can't be sent", ["cause": error.rawValue], level: .error)
      throw CollectorRefusal(500, "remote configuration can't be sent: \(error.rawValue)")
    }
  }

  func entries(_ condition: String) throws(CollectorRefusal) -> [RemoteNamespace] {
    do throws(SQLiteError) { return try Self.entries(condition, connection) } catch {
      throw CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)
    }
  }

  private enum ServedColumn: String, SQLiteColumn {
    case namespace, entry
    case updateTime = "update_time"
  }

  /// The namespaces that are served, each with its keys and when it changed. - Throws: 503 when the database can't be read.
  func served() throws(CollectorRefusal) -> [JSONValue] {
    refresh()
    do throws(SQLiteError) {
      let statement = try connection.prepare(
        "SELECT \(ServedColumn.list) FROM entries WHERE is_removed = 0 ORDER BY namespace LIMIT \(Self.changesMax)")
      var served: [JSONValue] = []
      try statement.forEachRow(of: ServedColumn.self) { row in
        served.append([
          "namespace": .string(row.text(.namespace)), "changedTime": .int(row.int64(.updateTime)),
          "entry": (try? JSONValue(parsing: row.text(.entry))) ?? .null,
        ])
      }
      return served
    } catch {
      throw CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)
    }
  }

  // MARK: The folder

  /// Takes over what changed in the folder: all of it or, with any fault, nothing.
  func refresh() {
    defer { shareVersion() }
    let hasChanged = watch.hasChanged(uptime: time.uptime, unixMilliseconds: time.unixMilliseconds)
    guard hasChanged || rollouts.mayBeDone else { return }
    do {
      if hasChanged { try takeOver() }
      rollouts.mayBeDone = false
      try finishRollout()
    } catch let refused as ConfigurationFaults {
      watch.forget()
      if faults != refused.faults.count {
        for fault in refused.faults { log.error("remote configuration was not taken", ["fault": fault.description]) }
      }
      faults = refused.faults.count
    } catch {
      watch.forget()
      log.fault("collector.remote", "remote configuration can't be taken over", ["cause": "\(error)"], level: .error)
    }
  }

  private func takeOver() throws {
    let files = try RemoteFolder.read(watch.folder)
    let (changed, removed) = try Self.difference(files, connection)
    try forget()
    if !changed.isEmpty || !removed.isEmpty {
      try take(changed, removed)
      log.info(
        "remote configuration changed",
        [
          "updateTime": String(updateTime), "version": String(number), "changed": String(changed.count),
          "removed": String(removed.count),
        ])
    }
    faults = 0
    let serves = try Self.serves(connection)
    watch.note(isEmpty: files.isEmpty && serves, to: log)
    log.faultEnded("collector.remote", "the folder of remote configuration is sound again")
  }

  private func take(_ changed: [RemoteNamespace], _ removed: [RemoteNamespace]) throws(SQLiteError) {
    let next = Self.count(after: updateTime, now: time.unixMilliseconds)
    try Self.write(changed, removed, at: next, number: number + 1, to: connection)
    (updateTime, number) = (next, number + 1)
    rollouts.mayBeDone = true
    shared?.mustClaim = true
  }

  /// The differences between the files and the database. A folder without a file takes nothing away.
  private static func difference(
    _ files: [RemoteNamespace], _ connection: SQLiteConnection
  ) throws -> (changed: [RemoteNamespace], removed: [RemoteNamespace]) {
    let served = Dictionary(
      uniqueKeysWithValues: try entries("WHERE is_removed = 0", connection).map { ($0.name, $0) })
    let names = Set(files.filter { !$0.isRemoved }.map(\.name))
    let removed = files.isEmpty ? [] : served.keys.filter { !names.contains($0) }
    return (
      files.filter { !$0.isRemoved && served[$0.name] != $0 },
      removed.map { RemoteNamespace(name: $0, isRemoved: true, keys: []) }
    )
  }

  private static func serves(_ connection: SQLiteConnection) throws(SQLiteError) -> Bool {
    try connection.firstInt("SELECT count(*) FROM entries WHERE is_removed = 0") ?? 0 > 0
  }

  static func write(
    _ changed: [RemoteNamespace], _ removed: [RemoteNamespace], at time: Int64, number: Int64,
    to connection: SQLiteConnection
  ) throws(SQLiteError) {
    let replace = try connection.prepare("REPLACE INTO entries VALUES (:namespace, :entry, :is_removed, :time)")
    try connection.transaction { () throws(SQLiteError) in
      for entry in changed + removed {
        replace.bind(":namespace", entry.name.text)
        replace.bind(":entry", entry.json.text)
        replace.bind(":is_removed", entry.isRemoved)
        replace.bind(":time", time)
        try replace.run()
      }
      try note(["update_time": time, "version": number], to: connection)
    }
  }

  static func note(_ facts: [String: Int64], to connection: SQLiteConnection) throws(SQLiteError) {
    let note = try connection.prepare("REPLACE INTO facts VALUES (:key, :value)")
    for (key, value) in facts {
      note.bind(":key", key)
      note.bind(":value", value)
      try note.run()
    }
  }

  private func forget() throws(SQLiteError) {
    let before = time.unixMilliseconds - Self.removedKept
    let newest = try connection.firstInt(
      "SELECT max(update_time) FROM entries WHERE is_removed = 1 AND update_time < \(before)")
    guard let newest else { return }
    try connection.transaction { () throws(SQLiteError) in
      try connection.execute("DELETE FROM entries WHERE is_removed = 1 AND update_time <= \(newest)")
      try connection.execute("REPLACE INTO facts VALUES ('forgotten_time', \(newest))")
    }
    forgottenTime = newest
  }

  private enum EntryColumn: String, SQLiteColumn { case entry }

  static func entries(
    _ condition: String, _ connection: SQLiteConnection
  ) throws(SQLiteError) -> [RemoteNamespace] {
    let statement = try connection.prepare("SELECT \(EntryColumn.list) FROM entries \(condition)")
    var result: [RemoteNamespace] = []
    try statement.forEachRow(of: EntryColumn.self) { row in
      // It was sound when it was written.
      if let entry = (try? JSONValue(parsing: row.text(.entry))).flatMap({ try? RemoteNamespace(parsing: $0) }) {
        result.append(entry)
      }
    }
    return result
  }
}
