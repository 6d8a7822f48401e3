import PrismConfig
import PrismProtocol
import PrismSQLite

/// The rollouts that are remembered, and what became of them: the tables `rollouts` and `rollout_events`.
struct RolloutHistory {
  /// Rollouts and events that are kept. A device that was last here before them asks for everything.
  static let (rolloutsMax, eventsMax) = (100, 1000)

  /// In their order.
  private(set) var events: [Rollout.Event] = []
  private var entries: [Int64: [RemoteNamespace]] = [:]

  private enum EntryColumn: String, SQLiteColumn { case id, entries }
  private enum EventColumn: String, SQLiteColumn { case time, rollout, state, percent, groups, who }

  init() {}

  init(_ statements: SQLStatements) throws {
    for row in try statements.rows(of: EntryColumn.self, "FROM rollouts") {
      entries[row.int64(.id)] = Self.list(row.text(.entries)).compactMap { try? RemoteNamespace(parsing: $0) }
    }
    events = try statements.rows(of: EventColumn.self, "FROM rollout_events ORDER BY time").map { row in
      Rollout.Event(
        time: row.int64(.time), rollout: row.int64(.rollout),
        state: Rollout.State(rawValue: row.text(.state)) ?? .rolledBack,
        reach: Rollout.Reach(percent: row.int(.percent), groups: Self.list(row.text(.groups)).compactMap(\.string)),
        who: row.text(.who))
    }
  }

  private static func list(_ text: String) -> [JSONValue] { (try? JSONValue(parsing: text))?.array ?? [] }

  /// Adds an event, with the entries of a rollout that begins.
  /// - Returns: the time of the newest event that is forgotten; nil: all are kept.
  mutating func add(
    _ event: Rollout.Event, _ begun: [RemoteNamespace]?, to statements: SQLStatements
  ) throws -> Int64? {
    if let begun {
      try statements.insert(
        EntryColumn.self, into: "rollouts", [event.rollout, JSONValue.array(begun.map(\.json)).text])
      entries[event.rollout] = begun
    }
    let groups = JSONValue.array(event.reach.groups.map { .string($0) }).text
    try statements.insert(
      EventColumn.self, into: "rollout_events",
      [event.time, event.rollout, event.state.rawValue, event.reach.percent, groups, event.who])
    events.append(event)
    let forgotten = forget()
    if let forgotten {
      try statements.run("DELETE FROM rollout_events WHERE time <= $1", [forgotten])
      try statements.run("DELETE FROM rollouts WHERE id NOT IN (SELECT rollout FROM rollout_events)")
    }
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
