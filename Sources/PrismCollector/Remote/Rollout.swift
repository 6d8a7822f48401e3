import PrismConfig
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite

/// Namespaces' configurations that a part of the fleet gets before the folder has them (docs/remote-configuration.md).
struct Rollout: Sendable, Equatable {
  enum State: String, Sendable, CaseIterable {
    /// The chosen devices get it.
    case running
    /// Devices that have it keep it; no other one gets it.
    case paused
    /// Every device gets what the folder has.
    case rolledBack
    /// The folder has what was rolled out.
    case done

    var isActive: Bool { self == .running || self == .paused }
  }

  /// The share of devices that get it, and those that get it in any case.
  struct Reach: Sendable, Equatable {
    static let groupsMax = 50

    /// 0 to 100, of all devices or of those of the expression.
    var percent = 0
    /// Ids of devices, in which `*` is any characters.
    var groups: [String] = []
    /// Chooses the devices of the share (`DeviceExpression`); nil: all.
    var expression: String?

    /// - Parameter chosen: the devices of an expression. Without those of this one only `groups` count.
    func includes(_ device: String, of rollout: Int64, among chosen: DeviceChoice?) -> Bool {
      (expression == nil || expression == chosen?.expression && chosen?.devices.contains(device) == true)
        && Rollout.share(of: device, in: rollout) < percent * 100 || groups.contains { Self.matches(device, $0) }
    }

    static func matches(_ device: String, _ group: String) -> Bool {
      let parts = group.split(separator: "*", omittingEmptySubsequences: false)
      guard parts.count > 1 else { return device == group }
      guard device.hasPrefix(parts[0]) else { return false }
      var rest = device.dropFirst(parts[0].count)
      for part in parts.dropFirst().dropLast() where !part.isEmpty {
        guard let found = rest.firstRange(of: part) else { return false }
        rest = rest[found.upperBound...]
      }
      return rest.hasSuffix(parts[parts.count - 1])
    }
  }

  /// A change of it.
  struct Event: Sendable, Equatable {
    /// The store's count at this change: even, milliseconds since 1970 as long as the clock is right.
    var time: Int64
    var rollout: Int64
    var state: State
    var reach: Reach
    /// The operator, as the log names operators; empty: the collector itself; `guard: ` and why.
    var who: String
  }

  /// One that begins.
  typealias Begun = (entries: [RemoteNamespace], rule: RolloutGuard?)

  /// The version of the configuration at its start.
  let id: Int64
  let entries: [RemoteNamespace]
  /// nil: it ends by operators only.
  var rule: RolloutGuard?
  /// The last one.
  var event: Event
  /// `time` of its first event.
  var begin: Int64

  /// A device's place from 0 to 9,999: always the same in one rollout, another in the next.
  static func share(of device: String, in rollout: Int64) -> Int {
    let hash = (try? Hashing.sha256(Array("prism rollout\n\(rollout)\n\(device)".utf8))) ?? []
    return Int(hash.prefix(4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } % 10_000)
  }

  /// Whether a device with this count has it: of devices that have it, the count is odd.
  func marks(_ updateTime: Int64?) -> Bool { updateTime.map { $0 & 1 == 1 && $0 > begin } ?? false }

  /// Whether a device gets it. - Parameter holds: it has it already.
  func isFor(_ device: String, holds: Bool, among chosen: DeviceChoice?) -> Bool {
    switch event.state {
    case .running: holds || event.reach.includes(device, of: id, among: chosen)
    case .paused: holds
    case .rolledBack, .done: false
    }
  }
}

extension Rollout.Reach {
  /// Without an empty expression: it means all devices.
  var settled: Self { Self(percent: percent, groups: groups, expression: expression == "" ? nil : expression) }

  /// As the log names it.
  var text: String {
    "\(percent) %\(expression.map { " where \($0)" } ?? ""), \(groups.joined(separator: " "))"
  }

  /// The columns `percent` and `groups`. The share of an expression is beside it: a replica of an earlier version, which knows no
  /// expressions, gives the configuration to `groups` alone.
  fileprivate var row: (percent: Int, groups: [JSONValue]) {
    let groups = groups.map { JSONValue.string($0) }
    guard let expression else { return (percent, groups) }
    return (0, groups + [["where": .string(expression), "percent": .int(percent)]])
  }

  fileprivate init(percent: Int, _ groups: [JSONValue]) {
    let choice = groups.first { $0["where"] != nil }
    self.init(
      percent: choice?["percent"]?.int ?? percent, groups: groups.compactMap(\.string),
      expression: choice?["where"]?.string)
  }
}

/// The rollouts that are remembered, and what became of them: the tables `rollouts` and `rollout_events`.
struct RolloutHistory {
  /// Rollouts and events that are kept. A device that was last here before them asks for everything.
  static let (rolloutsMax, eventsMax) = (100, 1000)

  /// In their order.
  private(set) var events: [Rollout.Event] = []
  private var entries: [Int64: [RemoteNamespace]] = [:]
  private var guards: [Int64: RolloutGuard] = [:]

  private enum EntryColumn: String, SQLiteColumn { case id, entries }
  private enum EventColumn: String, SQLiteColumn { case time, rollout, state, percent, groups, who }

  init() {}

  init(_ statements: SQLStatements) throws {
    for row in try statements.rows(of: EntryColumn.self, "FROM rollouts") {
      let list = Self.list(row.text(.entries))
      entries[row.int64(.id)] = list.compactMap { try? RemoteNamespace(parsing: $0) }
      guards[row.int64(.id)] = list.lazy.compactMap { $0["guard"] }.first.flatMap { try? RolloutGuard($0) }
    }
    events = try statements.rows(of: EventColumn.self, "FROM rollout_events ORDER BY time").map { row in
      Rollout.Event(
        time: row.int64(.time), rollout: row.int64(.rollout),
        state: Rollout.State(rawValue: row.text(.state)) ?? .rolledBack,
        reach: Rollout.Reach(percent: row.int(.percent), Self.list(row.text(.groups))),
        who: row.text(.who))
    }
  }

  private static func list(_ text: String) -> [JSONValue] { (try? JSONValue(parsing: text))?.array ?? [] }

  /// Adds an event, with the entries of a rollout that begins.
  /// - Returns: the time of the newest event that is forgotten; nil: all are kept.
  mutating func add(
    _ event: Rollout.Event, _ begun: Rollout.Begun?, to statements: SQLStatements
  ) throws -> Int64? {
    if let begun {
      // An entry without a name is not a namespace's.
      let list = begun.entries.map(\.json) + (begun.rule.map { [["guard": $0.json]] } ?? [])
      try statements.insert(EntryColumn.self, into: "rollouts", [event.rollout, JSONValue.array(list).text])
      (entries[event.rollout], guards[event.rollout]) = (begun.entries, begun.rule)
    }
    let (percent, groups) = event.reach.row
    try statements.insert(
      EventColumn.self, into: "rollout_events",
      [event.time, event.rollout, event.state.rawValue, percent, JSONValue.array(groups).text, event.who])
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
    guards = guards.filter { known.contains($0.key) }
    return forgotten
  }

  private func rollout(_ event: Rollout.Event?) -> Rollout? {
    guard let event, let entries = entries[event.rollout] else { return nil }
    let begin = events.first { $0.rollout == event.rollout }?.time ?? event.time
    return Rollout(id: event.rollout, entries: entries, rule: guards[event.rollout], event: event, begin: begin)
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
