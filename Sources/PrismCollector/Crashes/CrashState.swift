import PrismBase
import PrismProtocol
import PrismSQLite

/// An operator's word about a group of crashes. A group without one is open.
struct CrashState: Sendable, Equatable {
  enum Condition: String, Sendable, CaseIterable {
    case open, resolved
    /// It is shown again after some more crashes, or at a time.
    case ignored
    /// It was resolved, and a crash of it happened since.
    case regressed
  }

  var fingerprint: String
  var condition: Condition
  /// The operator who changed it, as the log names operators.
  var who: String
  /// When the operator did, milliseconds since 1970.
  var changedTime: Int64
  /// The newest crash of the store at that time: later ones have higher ids. 0: it was never changed, and has notes only.
  var report: Int64
  /// The build with the fix, as the app's name and version, or the version alone; nil: any later crash is a regression.
  var build: String?
  var facts = CrashFacts()
  /// When crashes changed it: that it regressed, or is no longer ignored. Milliseconds since 1970.
  var regressedTime: Int64?

  /// The condition that crashes and time lead to.
  /// - Parameters:
  ///   - versions: the group's crashes by the app's name and version.
  ///   - count: all its crashes.
  ///   - devices: all its devices.
  ///   - now: milliseconds since 1970.
  func condition(versions: [String: CrashTally], count: Int, devices: Int, now: Int64) -> Condition {
    switch condition {
    case .resolved: versions.contains { isContradicted(by: $0.value, of: $0.key) } ? .regressed : .resolved
    case .ignored: facts.ignored?.isOver(count: count, devices: devices, now: now) == true ? .open : .ignored
    case .open, .regressed: condition
    }
  }

  /// Whether the crashes of one build show that the bug is back: one came and happened since, in a build that has the fix.
  private func isContradicted(by tally: CrashTally, of name: String) -> Bool {
    tally.lastReport > report && tally.lastHappened >= changedTime && hasFix(name)
  }

  /// By the numbers of the versions; if they can't be compared, a build that crashed before has no fix.
  private func hasFix(_ name: String) -> Bool {
    guard let build, name != build else { return true }
    let (one, fixed) = (Self.parts(name), Self.parts(build))
    if fixed.app.isEmpty || one.app == fixed.app, let version = CrashVersion(one.version),
      let first = CrashVersion(fixed.version)
    {
      return version >= first
    }
    return !facts.builds.contains(name)
  }

  private static func parts(_ build: String) -> (app: Substring, version: Substring) {
    guard let space = build.lastIndex(of: " ") else { return ("", build[...]) }
    return (build[..<space], build[build.index(after: space)...])
  }

  /// null: it was never changed.
  var json: JSONValue {
    guard report != 0 else { return .null }
    return JSONValue([
      "who": who, "changedTime": changedTime, "build": build, "count": facts.ignored?.more,
      "devices": facts.ignored?.moreDevices, "until": facts.ignored?.until, "regressedTime": regressedTime,
    ])
  }
}

extension CrashState {
  /// The state of before, or one that was never changed, to note something in it.
  init(noting group: CrashGroup, _ before: CrashState?, at now: Int64) {
    self =
      before
      ?? CrashState(fingerprint: group.fingerprint, condition: .open, who: "", changedTime: now, report: 0)
    (fingerprint, facts.rules, facts.sample) = (group.fingerprint, CrashFrameTable.version, group.reports.last)
  }
}

/// The facts about a group of crashes that are kept as one text beside its state.
struct CrashFacts: ControlMessage {
  static let commentsMax = 20

  /// An operator's words, with who said them and when: milliseconds since 1970.
  struct Note: ControlMessage {
    var text = "", who = ""
    var time: Int64 = 0
  }

  /// How long a group is ignored: until a number of crashes or devices more, or until a time, the first of them.
  struct Ignored: ControlMessage {
    /// Of the group when it was ignored.
    var count = 0, devices = 0
    var more: Int?, moreDevices: Int?
    /// Milliseconds since 1970.
    var until: Int64?

    func isOver(count: Int, devices: Int, now: Int64) -> Bool {
      let hasCrashes = more.map { count - self.count >= $0 } ?? false
      let hasDevices = moreDevices.map { devices - self.devices >= $0 } ?? false
      return hasCrashes || hasDevices || until.map { now >= $0 } ?? false
    }
  }

  /// The builds that crashed before it was resolved.
  var builds: [String] = []
  var ignored: Ignored?
  var assignee: Note?
  /// The address of a ticket.
  var link: Note?
  /// The newest ones, ascending.
  var comments: [Note] = []
  /// The operator's rule about the crashes with this key.
  var rule: CrashRule?
  /// The rules by which the group was made, and a report of it, by which it is found under other rules.
  var rules = CrashFrameTable.version
  var sample: Int64?

  mutating func add(_ comment: Note) { comments = (comments + [comment]).suffix(Self.commentsMax) }
}

extension CrashFacts {
  /// Reads `controlJSON`, or the list of builds that an earlier version wrote.
  init(text: String) {
    let value = (try? JSONValue(parsing: text)) ?? .null  // written as `controlJSON`
    self.init(controlJSON: value)
    if let list = value.array { builds = list.compactMap(\.string) }
    if value["rules"] == nil { rules = 1 }
  }
}

/// Remembers what operators said about groups of crashes. A write is at rest when its call returns.
actor CrashStateStore {
  static let countMax = 20_000

  fileprivate enum Column: String, SQLiteColumn {
    case fingerprint, state, who, changedTime, report, build, facts, regressedTime
  }

  private let executor = DispatchQueueExecutor(label: "prism.collector.page")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let session: FleetSession

  init(_ database: FleetDatabase) { session = FleetSession(database) }

  /// All of them, at most `countMax`.
  func all() throws(StoreFailure) -> [CrashState] {
    try session.read {
      try $0.rows(of: Column.self, "FROM crash_states LIMIT \(Self.countMax)").map(CrashState.init)
    }
  }

  /// Replaces the state of a group. Past the most that are kept, the one that was changed first is forgotten.
  func put(_ state: CrashState) throws(StoreFailure) {
    try session.write { statements in
      try statements.insert(
        Column.self, into: "crash_states",
        [
          state.fingerprint, state.condition.rawValue, state.who, state.changedTime, state.report, state.build,
          state.facts.controlJSON.text, state.regressedTime,
        ], onConflict: Column.replacing(.fingerprint))
      try statements.run(
        """
        DELETE FROM crash_states WHERE fingerprint IN (SELECT fingerprint FROM crash_states
          ORDER BY changed_time DESC, fingerprint LIMIT 1000 OFFSET \(Self.countMax))
        """)
    }
  }

  /// Notes the condition that crashes led a group to, with notices of it, unless an operator or another replica changed it since.
  /// - Returns: whether this call noted it.
  func mark(
    _ state: CrashState, as condition: CrashState.Condition, at time: Int64, adding notices: [Notice] = []
  ) throws(StoreFailure) -> Bool {
    try session.write { statements in
      let isMarked =
        try statements.run(
          """
          UPDATE crash_states SET state = $1, regressed_time = $2
          WHERE fingerprint = $3 AND state = $4 AND changed_time = $5 RETURNING 1
          """, [condition.rawValue, time, state.fingerprint, state.condition.rawValue, state.changedTime]) > 0
      if isMarked { try NoticeStore.add(notices, statements) }
      return isMarked
    }
  }
}

extension CrashState {
  fileprivate init(_ row: SQLRow<CrashStateStore.Column>) {
    self.init(
      fingerprint: row.text(.fingerprint), condition: Condition(rawValue: row.text(.state)) ?? .open,
      who: row.text(.who), changedTime: row.int64(.changedTime), report: row.int64(.report), build: row.string(.build),
      facts: CrashFacts(text: row.text(.facts)), regressedTime: row.integer(.regressedTime))
  }
}
