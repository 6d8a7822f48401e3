import PrismConfig
import PrismProtocol
import PrismSQLite

/// The tables `rollouts` and `rollout_events` of `remote.db`.
struct RolloutTable {
  static let schema = """
    CREATE TABLE IF NOT EXISTS rollouts (id INTEGER PRIMARY KEY, entries TEXT NOT NULL);
    CREATE TABLE IF NOT EXISTS rollout_events (
      time INTEGER PRIMARY KEY, rollout INTEGER NOT NULL, state TEXT NOT NULL, percent INTEGER NOT NULL,
      groups TEXT NOT NULL, who TEXT NOT NULL);
    """
  /// Rollouts and events that are kept. A device that was last here before them asks for everything.
  static let (rolloutsMax, eventsMax) = (100, 1000)

  /// In their order.
  private(set) var events: [Rollout.Event] = []
  /// The folder may have what is rolled out.
  var mayBeDone = true
  private var entries: [Int64: [RemoteNamespace]] = [:]

  private enum EntryColumn: String, SQLiteColumn { case id, entries }
  private enum EventColumn: String, SQLiteColumn { case time, rollout, state, percent, groups, who }

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    try connection.execute(Self.schema)
    try connection.prepare("SELECT \(EntryColumn.list) FROM rollouts").forEachRow(of: EntryColumn.self) { row in
      entries[row.int64(.id)] = Self.list(row.text(.entries)).compactMap { try? RemoteNamespace(parsing: $0) }
    }
    try connection.prepare("SELECT \(EventColumn.list) FROM rollout_events ORDER BY time")
      .forEachRow(of: EventColumn.self) { row in
        events.append(
          Rollout.Event(
            time: row.int64(.time), rollout: row.int64(.rollout),
            state: Rollout.State(rawValue: row.text(.state)) ?? .rolledBack,
            reach: Rollout.Reach(
              percent: row.int(.percent), groups: Self.list(row.text(.groups)).compactMap(\.string)),
            who: row.text(.who)))
      }
  }

  private static func list(_ text: String) -> [JSONValue] { (try? JSONValue(parsing: text))?.array ?? [] }

  /// Adds an event, with the entries of a rollout that begins; within a transaction.
  /// - Returns: the time of the newest event that is forgotten; nil: all are kept.
  mutating func add(
    _ event: Rollout.Event, _ begun: [RemoteNamespace]?, to connection: SQLiteConnection
  ) throws(SQLiteError) -> Int64? {
    if let begun {
      let insert = try connection.prepare("INSERT INTO rollouts (id, entries) VALUES (:id, :entries)")
      insert.bind(":id", event.rollout)
      insert.bind(":entries", JSONValue.array(begun.map(\.json)).text)
      try insert.run()
    }
    let insert = try connection.prepare(
      """
      INSERT INTO rollout_events (time, rollout, state, percent, groups, who)
      VALUES (:time, :rollout, :state, :percent, :groups, :who)
      """)
    insert.bind(":time", event.time)
    insert.bind(":rollout", event.rollout)
    insert.bind(":state", event.state.rawValue)
    insert.bind(":percent", event.reach.percent)
    insert.bind(":groups", JSONValue.array(event.reach.groups.map { .string($0) }).text)
    insert.bind(":who", event.who)
    try insert.run()
    var next = self
    next.events.append(event)
    if let begun { next.entries[event.rollout] = begun }
    let forgotten = next.forget()
    if let forgotten {
      try connection.execute("DELETE FROM rollout_events WHERE time <= \(forgotten)")
      try connection.execute("DELETE FROM rollouts WHERE id NOT IN (SELECT rollout FROM rollout_events)")
    }
    self = next
    return forgotten
  }

  private mutating func forget() -> Int64? {
    var count = max(0, events.count - Self.eventsMax)
    let rollouts = entries.keys.sorted()
    if rollouts.count > Self.rolloutsMax {
      let last = rollouts[rollouts.count - Self.rolloutsMax - 1]
      count = max(count, events.count { $0.rollout <= last })
    }
    guard count > 0 else { return nil }
    let forgotten = events[count - 1].time
    events.removeFirst(count)
    let known = Set(events.map(\.rollout))
    entries = entries.filter { known.contains($0.key) }
    return forgotten
  }

  private func rollout(_ event: Rollout.Event?) -> Rollout? {
    guard let event, let entries = entries[event.rollout] else { return nil }
    let begin = events.first { $0.rollout == event.rollout }?.time ?? event.time
    return Rollout(id: event.rollout, entries: entries, event: event, begin: begin)
  }

  /// The newest one, in any state.
  var newest: Rollout? { rollout(events.last) }
  var active: Rollout? { newest.flatMap { $0.event.state.isActive ? $0 : nil } }

  /// The rollout that a device has that was answered with this count: an odd one says so.
  func held(at time: Int64) -> Rollout? {
    guard time & 1 == 1, let event = events.last(where: { $0.time <= time }), event.state.isActive else { return nil }
    return rollout(event)
  }
}
