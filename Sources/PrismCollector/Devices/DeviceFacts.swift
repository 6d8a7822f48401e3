import PrismBase
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite
import Synchronization

/// The app of each device with its version, and the device's last crash, by namespace, as its reports say them. For all replicas.
///
/// Packets note them in memory, and they are written down together, a second after the first one. A crash of the collector loses
/// those of the last second; they come again with the devices' next packets, but for the time of a crash.
actor DeviceFacts {
  struct Key: Hashable, Sendable {
    let device: String, namespace: String
  }

  struct Facts: Equatable, Sendable {
    /// Empty: no report said it.
    var app = "", version = ""
    /// When the last crash came, milliseconds since 1970; nil: no crash came since this collector notes them.
    var crashTime: Int64?
    var notedTime: Int64 = 0
  }

  private enum Column: String, SQLiteColumn { case device, namespace, app, version, crashTime, notedTime }

  /// Facts of the same words are written down once an hour.
  fileprivate static let repeatMilliseconds: Int64 = 3_600_000
  /// Names come from senders: a bounded number of them is held, and further ones wait for their devices' next packets.
  fileprivate static let (knownMax, waitingMax, groupMax, wordsMax) = (100_000, 10_000, 500, 1_000)
  fileprivate static let wordBytesMax = 128

  fileprivate struct Notes {
    var known: [Key: Facts] = [:]
    var waiting: [Key: Facts] = [:]
    /// App and version of common information, by its hash.
    var words: [Int64: (app: String, version: String)] = [:]
    var isWriting = false
  }

  private let executor = DispatchQueueExecutor(label: "prism.collector.facts")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let session: FleetSession
  private let time: any TimeSource
  private let log: Logger
  private nonisolated let notes = Mutex(Notes())

  init(in database: FleetDatabase, time: any TimeSource, log: Logger) {
    (session, self.time, self.log) = (FleetSession(database), time, log)
  }

  // MARK: Noting

  /// Takes what a packet of reports says. Never waits.
  /// - Parameter own: the last row's own members, where it has no common ones.
  nonisolated func note(_ key: Key, common: CommonInformation?, own: [UInt8], hasCrash: Bool) {
    let now = time.unixMilliseconds
    let own = common == nil ? Notes.said(in: own) : nil
    let begins = notes.withLock { notes in
      let words = own ?? common.map { notes.said(by: $0) } ?? ("", "")
      let facts = Facts(app: words.app, version: words.version, crashTime: hasCrash ? now : nil, notedTime: now)
      guard notes.take(facts, key), !notes.isWriting else {
        return false
      }
      notes.isWriting = true
      return true
    }
    guard begins else { return }
    Task {
      try? await time.sleep(for: .seconds(1))  // cancelled only with the process
      await write()
    }
  }

  /// Writes down what was noted; it stays for the next time where it can't be written.
  func write() {
    notes.withLock { $0.isWriting = false }
    while true {
      let group = notes.withLock { Array($0.waiting.prefix(Self.groupMax)) }
      if group.isEmpty { return log.faultEnded("collector.facts", "facts of devices are written down again") }
      do throws(StoreFailure) {
        try session.write { statements in
          try statements.insert(
            Column.self, into: "device_facts",
            rows: group.map { key, facts in
              [key.device, key.namespace, facts.app, facts.version, facts.crashTime, facts.notedTime]
            },
            onConflict: """
              (device, namespace) DO UPDATE SET
                app = CASE WHEN excluded.app = '' THEN device_facts.app ELSE excluded.app END,
                version = CASE WHEN excluded.app = '' THEN device_facts.version ELSE excluded.version END,
                crash_time = coalesce(excluded.crash_time, device_facts.crash_time), noted_time = excluded.noted_time
              """)
        }
      } catch {
        return log.fault("collector.facts", "facts of devices can't be written down", ["cause": error.description])
      }
      notes.withLock { notes in
        for (key, facts) in group where notes.waiting[key] == facts { notes.waiting[key] = nil }
      }
    }
  }

  // MARK: Reading

  func all() throws(StoreFailure) -> [Key: Facts] {
    write()
    return try session.read { statements in
      try statements.rows(of: Column.self, "FROM device_facts").reduce(into: [:]) { facts, row in
        facts[Key(device: row.text(.device), namespace: row.text(.namespace))] = Facts(
          app: row.text(.app), version: row.text(.version), crashTime: row.integer(.crashTime),
          notedTime: row.int64(.notedTime))
      }
    }
  }
}

extension DeviceFacts.Notes {
  fileprivate mutating func said(by common: CommonInformation) -> (app: String, version: String) {
    if let known = words[common.hash] { return known }
    let found = Self.said(in: common.object)
    if words.count >= DeviceFacts.wordsMax { words = [:] }
    words[common.hash] = found
    return found
  }

  /// A version without an app is no one's.
  fileprivate static func said(in object: [UInt8]) -> (app: String, version: String) {
    let meta = try? JSONValue(parsing: object)  // too deep for a tree: without words
    let word = { (key: String) in meta?[key]?.string?.cut(atBytes: DeviceFacts.wordBytesMax) ?? "" }
    let app = word("APP_NAME")
    return (app, app.isEmpty ? "" : word("APP_VERSION"))
  }

  /// - Returns: whether there is something to write.
  fileprivate mutating func take(_ facts: DeviceFacts.Facts, _ key: DeviceFacts.Key) -> Bool {
    var facts = facts
    if let before = known[key] {
      if facts.app.isEmpty { (facts.app, facts.version) = (before.app, before.version) }
      let isSame = (facts.app, facts.version) == (before.app, before.version) && facts.crashTime == nil
      if isSame, abs(facts.notedTime - before.notedTime) < DeviceFacts.repeatMilliseconds { return false }
    }
    facts.crashTime = facts.crashTime ?? waiting[key]?.crashTime
    guard waiting[key] != nil || waiting.count < DeviceFacts.waitingMax else { return false }
    if known.count >= DeviceFacts.knownMax { known = [:] }
    (known[key], waiting[key]) = (facts, facts)
    return true
  }
}
