import PrismConfig
import PrismProtocol
import PrismSQL
import PrismSQLite

/// The remote configuration that is served: the namespaces, when each was changed last, and the rollouts. All replicas share
/// it; a replica's own copy is this value, as it was read last.
///
/// The version rises by one with every change, independent of the clock: devices refuse one that jumps. It begins with
/// the minutes since 1970, so that it still rises after the database was lost.
struct ServedConfiguration {
  /// Changes of one answer. A device that is further behind gets an answer that makes it ask for everything.
  static let changesMax = 1000
  /// A removed file is forgotten after this. A device that asks about a time before it gets everything.
  private static let removedKept: Int64 = 90 * 86_400_000

  struct Entry {
    var namespace: RemoteNamespace
    /// When it was changed last.
    var updateTime: Int64
  }

  private enum EntryColumn: String, SQLiteColumn { case namespace, entry, isRemoved, updateTime }

  private enum FactColumn: String, SQLiteColumn { case name, value }

  /// The number of the newest change; 0: there was no change yet.
  private(set) var version: Int64 = 0
  /// The time of the newest change. Even: a device that has what is rolled out gets the odd count behind it.
  private(set) var updateTime: Int64 = 0
  /// Removals up to this time are forgotten.
  private(set) var forgottenTime: Int64 = 0
  /// Made by chance with the first change: `updateTime` is a count of this database alone.
  private(set) var store: Int64 = 0
  /// With those that were removed.
  private var entries: [NamespaceName: Entry] = [:]
  private(set) var rollouts = RolloutHistory()

  init(_ statements: SQLStatements) throws {
    for row in try statements.rows(of: FactColumn.self, "FROM remote_facts") {
      switch row.text(.name) {
      case "version": version = row.int64(.value)
      case "update_time": updateTime = row.int64(.value)
      case "forgotten_time": forgottenTime = row.int64(.value)
      case "store": store = row.int64(.value)
      default: break
      }
    }
    for row in try statements.rows(of: EntryColumn.self, "FROM remote_entries") {
      // It was sound when it was written.
      guard let entry = try? RemoteNamespace(parsing: JSONValue(parsing: row.text(.entry))) else { continue }
      entries[entry.name] = Entry(namespace: entry, updateTime: row.int64(.updateTime))
    }
    rollouts = try RolloutHistory(statements)
  }

  /// Reads it to change it: other replicas wait until the transaction ends.
  init(locking statements: SQLStatements) throws {
    try statements.run(
      """
      INSERT INTO remote_facts (name, value) VALUES ('version', 0)
      ON CONFLICT (name) DO UPDATE SET value = remote_facts.value
      """)
    try statements.run(
      "INSERT INTO remote_facts (name, value) VALUES ('store', $1) ON CONFLICT (name) DO NOTHING",
      [Int64.random(in: 1 ... .max)])
    try self.init(statements)
  }

  static func version(_ statements: SQLStatements) throws -> Int64 {
    try statements.integer("SELECT value FROM remote_facts WHERE name = 'version'") ?? 0
  }

  // MARK: Asking

  /// The namespaces that are there, in the order of their names.
  var served: [Entry] {
    entries.values.filter { !$0.namespace.isRemoved }.sorted { $0.namespace.name < $1.namespace.name }
  }

  func has(_ entry: RemoteNamespace) -> Bool {
    let known = entries[entry.name]?.namespace
    return entry.isRemoved ? known?.isRemoved ?? true : known == entry
  }

  func hasChanged(_ name: NamespaceName, since time: Int64) -> Bool {
    entries[name].map { $0.updateTime > time } ?? false
  }

  /// The differences between the files of a folder and what is served. A folder without a file takes nothing away.
  func difference(from files: [RemoteNamespace]) -> [RemoteNamespace] {
    let names = Set(files.filter { !$0.isRemoved }.map(\.name))
    let removed = files.isEmpty ? [] : served.map(\.namespace.name).filter { !names.contains($0) }
    return files.filter { !$0.isRemoved && !has($0) }
      + removed.map { RemoteNamespace(name: $0, isRemoved: true, keys: []) }
  }

  /// The differences between the configuration of a device and the one that it is to have; nil: too many.
  func changes(since: Int64, from held: Rollout?, to wanted: Rollout?) -> [RemoteNamespace]? {
    var changes = entries.filter { $0.value.updateTime > since }.mapValues(\.namespace)
    if let held, held.id != wanted?.id {
      for entry in held.entries {
        changes[entry.name] =
          entries[entry.name]?.namespace ?? RemoteNamespace(name: entry.name, isRemoved: true, keys: [])
      }
    }
    for entry in wanted?.entries ?? [] { changes[entry.name] = held?.id == wanted?.id ? nil : entry }
    guard changes.count <= Self.changesMax else { return nil }
    return changes.values.sorted { $0.name < $1.name }
  }

  /// All that a device is to have, and the removals that are known: absence alone takes nothing away that another store gave.
  /// - Parameter wanted: what is rolled out to it.
  func whole(with wanted: Rollout?) -> [RemoteNamespace] {
    let names = Set(wanted?.entries.map(\.name) ?? [])
    let there = served.map(\.namespace).filter { !names.contains($0.name) } + (wanted?.entries ?? [])
    let removed = entries.values.map(\.namespace).filter { $0.isRemoved && !names.contains($0.name) }
    return (there + removed.prefix(max(0, RemoteDocument.namespacesMax - there.count))).sorted { $0.name < $1.name }
  }

  // MARK: Changing

  /// - Parameter now: milliseconds since 1970.
  mutating func take(_ changed: [RemoteNamespace], now: Int64, to statements: SQLStatements) throws {
    try forget(now: now, to: statements)
    guard !changed.isEmpty || version == 0 else { return }
    try count(now: now, to: statements)
    for entry in changed {
      entries[entry.name] = Entry(namespace: entry, updateTime: updateTime)
      try statements.insert(
        EntryColumn.self, into: "remote_entries", [entry.name.text, entry.json.text, entry.isRemoved, updateTime],
        onConflict: EntryColumn.replacing(.namespace))
    }
  }

  /// Adds an event of a rollout, at the time of this change. - Parameter begun: of one that begins.
  mutating func add(
    _ event: Rollout.Event, _ begun: Rollout.Begun?, now: Int64, to statements: SQLStatements
  ) throws {
    try count(now: now, to: statements)
    var event = event
    event.time = updateTime
    if begun != nil { event.rollout = version }
    if let forgotten = try rollouts.add(event, begun, to: statements) {
      forgottenTime = max(forgottenTime, forgotten + 1)
      try note("forgotten_time", forgottenTime, to: statements)
    }
  }

  /// Begins a new version that says the same.
  mutating func renew(now: Int64, to statements: SQLStatements) throws { try count(now: now, to: statements) }

  private mutating func count(now: Int64, to statements: SQLStatements) throws {
    updateTime = max(updateTime + 2, now) & ~1
    version = version == 0 ? now / 60_000 + 1 : version + 1
    try note("update_time", updateTime, to: statements)
    try note("version", version, to: statements)
  }

  private mutating func forget(now: Int64, to statements: SQLStatements) throws {
    let old = entries.filter { $0.value.namespace.isRemoved && $0.value.updateTime < now - Self.removedKept }
    guard let newest = old.values.map(\.updateTime).max() else { return }
    for name in old.keys {
      entries[name] = nil
      try statements.run("DELETE FROM remote_entries WHERE namespace = $1", [name.text])
    }
    forgottenTime = newest
    try note("forgotten_time", newest, to: statements)
  }

  private func note(_ name: String, _ value: Int64, to statements: SQLStatements) throws {
    try statements.insert(
      FactColumn.self, into: "remote_facts", [name, value], onConflict: FactColumn.replacing(.name))
  }
}
