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

  private let folder: String
  private let key: SigningKey?
  private let connection: SQLiteConnection
  private let time: any TimeSource
  private let log: Logger
  /// The time of the newest change.
  private var updateTime: Int64 = 0
  /// The number of the newest change.
  private var number: Int64 = 0
  /// Removals up to this time are forgotten.
  private var forgottenTime: Int64 = 0
  private var watch: FolderWatch
  /// The answer to the question for everything.
  private var whole: (updateTime: Int64, signedTime: Int64, body: [UInt8])?
  /// Of the folder as it is now; what was sound before is served.
  private(set) var faults = 0

  /// - Throws: `ConfigurationFaults` of the files, `SQLiteError`.
  init(_ options: CollectorOptions.Remote, state: String, time: any TimeSource, log: Logger) throws {
    (folder, key, self.time, self.log) = (options.folder, options.key, time, log)
    connection = try SQLiteConnection(.init(path: state + "/remote.db"))
    try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    try connection.execute(Self.schema)
    watch = FolderWatch(folder: options.folder)
    _ = watch.hasChanged(uptime: time.uptime, unixMilliseconds: time.unixMilliseconds)
    let known = try connection.firstInt("SELECT value FROM facts WHERE key = 'update_time'")
    forgottenTime = try connection.firstInt("SELECT value FROM facts WHERE key = 'forgotten_time'") ?? 0
    let (changed, removed) = try Self.difference(try RemoteFolder.read(folder), connection)
    updateTime = known ?? 0
    let knownNumber = try connection.firstInt("SELECT value FROM facts WHERE key = 'version'")
    number = knownNumber ?? time.unixMilliseconds / 60_000
    guard !changed.isEmpty || !removed.isEmpty || known == nil || knownNumber == nil else { return }
    (updateTime, number) = (max(updateTime + 1, time.unixMilliseconds), number + 1)
    try Self.write(changed, removed, at: updateTime, number: number, to: connection)
  }

  /// The version that packets' answers name.
  func version() -> Int64 {
    refresh()
    return number
  }

  /// - Parameter since: the time that the device has; nil: it asks for everything.
  /// - Throws: 500 when there is more than an answer may hold, 503 when the database can't be read.
  func answer(since: Int64?) throws(CollectorRefusal) -> Answer {
    refresh()
    guard let since else { return Answer(body: try wholeAnswer(), outcome: "whole") }
    // A time that this collector never gave, or of which not all is known any more.
    guard since <= updateTime, since >= forgottenTime else {
      return Answer(body: try askAgain(since), outcome: "again")
    }
    let changes = try entries("WHERE update_time > \(since) ORDER BY namespace LIMIT \(Self.changesMax + 1)")
    if changes.count > Self.changesMax { return Answer(body: try askAgain(since), outcome: "again") }
    let body = try seal(document(changes, isFull: false, since: since))
    return Answer(body: body, outcome: changes.isEmpty ? "unchanged" : "changes")
  }

  private func wholeAnswer() throws(CollectorRefusal) -> [UInt8] {
    let now = time.unixMilliseconds
    if let whole, whole.updateTime == updateTime, abs(now - whole.signedTime) < Self.wholeKept { return whole.body }
    let body = try seal(document(try entries("WHERE is_removed = 0 ORDER BY namespace"), isFull: true))
    whole = (updateTime, now, body)
    return body
  }

  private func askAgain(_ since: Int64) throws(CollectorRefusal) -> [UInt8] {
    try seal(document([], isFull: true, since: since))
  }

  private func document(_ entries: [RemoteNamespace], isFull: Bool, since: Int64? = nil) -> RemoteDocument {
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

  private func entries(_ condition: String) throws(CollectorRefusal) -> [RemoteNamespace] {
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
  private func refresh() {
    guard watch.hasChanged(uptime: time.uptime, unixMilliseconds: time.unixMilliseconds) else { return }
    do {
      let (changed, removed) = try Self.difference(try RemoteFolder.read(folder), connection)
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
      log.faultEnded("collector.remote", "the folder of remote configuration is sound again")
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

  private func take(_ changed: [RemoteNamespace], _ removed: [RemoteNamespace]) throws(SQLiteError) {
    let next = max(updateTime + 1, time.unixMilliseconds)
    try Self.write(changed, removed, at: next, number: number + 1, to: connection)
    (updateTime, number) = (next, number + 1)
  }

  /// The differences between the files and the database.
  private static func difference(
    _ files: [RemoteNamespace], _ connection: SQLiteConnection
  ) throws -> (changed: [RemoteNamespace], removed: [RemoteNamespace]) {
    let served = Dictionary(
      uniqueKeysWithValues: try entries("WHERE is_removed = 0", connection).map { ($0.name, $0) })
    let names = Set(files.map(\.name))
    let removed = served.keys.filter { !names.contains($0) }
      .map { RemoteNamespace(name: $0, isRemoved: true, keys: []) }
    return (files.filter { served[$0.name] != $0 }, removed)
  }

  private static func write(
    _ changed: [RemoteNamespace], _ removed: [RemoteNamespace], at time: Int64, number: Int64,
    to connection: SQLiteConnection
  ) throws(SQLiteError) {
    let replace = try connection.prepare("REPLACE INTO entries VALUES (:namespace, :entry, :is_removed, :time)")
    let note = try connection.prepare("REPLACE INTO facts VALUES (:key, :value)")
    try connection.transaction { () throws(SQLiteError) in
      for entry in changed + removed {
        replace.bind(":namespace", entry.name.text)
        replace.bind(":entry", entry.json.text)
        replace.bind(":is_removed", entry.isRemoved)
        replace.bind(":time", time)
        try replace.run()
      }
      for (key, value) in [("update_time", time), ("version", number)] {
        note.bind(":key", key)
        note.bind(":value", value)
        try note.run()
      }
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

  private static func entries(
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
