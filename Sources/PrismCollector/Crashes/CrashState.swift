import PrismBase
import PrismProtocol
import PrismSQL
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

  /// Whether crashes or the time may change it.
  var isJudged: Bool { condition == .resolved || condition == .ignored }

  /// Whether it is the same word of an operator, maybe with other notes.
  func isSameChange(as other: CrashState) -> Bool {
    (condition, report, changedTime, build) == (other.condition, other.report, other.changedTime, other.build)
      && facts.ignored == other.facts.ignored
  }

  /// Whether a crash shows that the bug is back: it came and happened since, in a build that has the fix.
  fileprivate func isContradicted(by crash: CrashReport) -> Bool {
    crash.firstRow > report && crash.happenedTime >= changedTime && hasFix(crash)
  }

  /// By the numbers of the versions; if they can't be compared, a build that crashed before has no fix. A crash without a version
  /// says nothing about a build.
  private func hasFix(_ crash: CrashReport) -> Bool {
    guard let build, ![crash.versionName, crash.origin.version].contains(build) else { return true }
    guard !crash.origin.version.isEmpty else { return false }
    if let fixed = version(of: build, for: crash.origin.app).flatMap(CrashVersion.init),
      let version = CrashVersion(crash.origin.version[...])
    {
      return version >= fixed
    }
    return !facts.builds.contains(crash.versionName)
  }

  /// The version of a build without the app's name; nil: it is of another app.
  private func version(of build: String, for app: String) -> Substring? {
    if !app.isEmpty, build.hasPrefix(app + " ") { return build[...].dropFirst(app.count + 1) }
    let word = build.prefix { $0 != " " }
    let isApp = CrashVersion(word) == nil || facts.builds.contains { $0.hasPrefix(word + " ") }
    return isApp && word != build && !app.isEmpty ? nil : build[...]
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
    var more: Int?, moreDevices: Int?
    /// Milliseconds since 1970.
    var until: Int64?
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

/// The crashes of a group that came since an operator resolved or ignored it. Each is judged when it comes, by its own facts.
struct CrashSince: Sendable {
  let state: CrashState
  private var crashes = 0, contradictions = 0
  /// Crashes by device, of as many devices as the state waits for.
  private var devices: [String: Int] = [:]
  private var devicesMax: Int { min(state.facts.ignored?.moreDevices ?? 0, CrashGroup.devicesMax) }

  init(_ state: CrashState) { self.state = state }

  /// - Parameter step: 1; -1 takes a crash out that was counted.
  mutating func count(_ crash: CrashReport, _ step: Int) {
    guard crash.firstRow > state.report else { return }
    crashes += step * crash.weight
    if state.isContradicted(by: crash) { contradictions += step }
    guard devices[crash.device] != nil || devices.count < devicesMax else { return }
    let count = (devices[crash.device] ?? 0) + step
    devices[crash.device] = count > 0 ? count : nil
  }

  /// The condition that crashes and time lead to. - Parameter isTimeOver: the time until which it is ignored.
  func condition(isTimeOver: Bool) -> CrashState.Condition {
    if state.condition == .resolved { return contradictions > 0 ? .regressed : .resolved }
    guard state.condition == .ignored, let ignored = state.facts.ignored else { return state.condition }
    let hasDevices = ignored.moreDevices != nil && devices.count >= devicesMax
    let hasCrashes = ignored.more.map { crashes >= $0 } ?? false
    return hasCrashes || hasDevices || isTimeOver ? .open : .ignored
  }
}

/// The crashes since the newest states of groups, by the fingerprints of these.
struct CrashJudgement: Sendable {
  private static let recountedMax = 100

  var since: [String: CrashSince] = [:]
  /// States for which all crashes were read again.
  private var recounted: [CrashState] = []

  private func isKnown(_ fingerprint: String, _ state: CrashState) -> Bool {
    since[fingerprint]?.state.isSameChange(as: state) == true
  }

  /// Whether crashes of a group were read before its state was known here, as another replica wrote it. Once for each change.
  /// - Parameter newest: the newest crash of each group, by fingerprint.
  mutating func isLate(_ states: [String: CrashState], _ newest: [String: Int64]) -> Bool {
    let late = states.filter { fingerprint, state in
      newest[fingerprint] ?? 0 > state.report && !isKnown(fingerprint, state)
        && !recounted.contains { $0.fingerprint == state.fingerprint && $0.isSameChange(as: state) }
    }
    recounted = (recounted + late.values).suffix(Self.recountedMax)
    return !late.isEmpty
  }

  /// From here on crashes count for these states.
  mutating func watch(_ states: [String: CrashState]) {
    let known = since.filter { fingerprint, since in states[fingerprint].map(since.state.isSameChange) == true }
    since = states.mapValues(CrashSince.init).merging(known) { $1 }
  }

  mutating func count(_ crash: CrashReport, _ step: Int) { since[crash.fingerprint.text]?.count(crash, step) }
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
  private var expiries = ExpiryWatch()

  init(_ database: FleetDatabase) { session = FleetSession(database) }

  /// Whether the time is over until which the group is ignored.
  func isTimeOver(_ state: CrashState, now: Int64, uptime: Duration) -> Bool {
    guard let until = state.facts.ignored?.until else { return false }
    return expiries.isOver("\(state.fingerprint) \(until)", at: until, now: now, uptime: uptime)
  }

  /// All of them, at most `countMax`.
  func all() throws(StoreFailure) -> [CrashState] {
    try session.read {
      try $0.rows(of: Column.self, "FROM crash_states LIMIT \(Self.countMax)").map(CrashState.init)
    }
  }

  /// Replaces the state of a group. Past the most that are kept, the oldest change is forgotten of the operator
  /// who has most.
  func put(_ state: CrashState) throws(StoreFailure) {
    try session.write { statements in
      try statements.insert(
        Column.self, into: "crash_states",
        [
          state.fingerprint, state.condition.rawValue, state.who, state.changedTime, state.report, state.build,
          state.facts.controlJSON.text, state.regressedTime,
        ], onConflict: Column.replacing(.fingerprint))
      try statements.trim(
        "crash_states", to: Self.countMax, key: "fingerprint", of: "who", by: "changed_time DESC")
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
