import PrismBase
import PrismSQLite

/// Remembers what operators said about groups of crashes. A write is at rest when its call returns.
actor CrashStateStore {
  /// States that are kept.
  static let countMax = 20_000

  fileprivate enum Column: String, SQLiteColumn {
    case fingerprint, state, who
    case changedTime = "changed_time"
    case report, build, facts
    case regressedTime = "regressed_time"
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
          state.facts.text, state.regressedTime,
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
