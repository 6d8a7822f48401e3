import PrismBase
import PrismSQLite

/// States of crashes, and sessions that were signed out, in `page.db`, beside the collector's database: they are few, and outlive its damage.
actor SQLiteCrashStateStore: CrashStateStore, EndedSessionStore {
  private static let schema = """
    CREATE TABLE IF NOT EXISTS crash_states (
      fingerprint TEXT PRIMARY KEY, state TEXT NOT NULL, who TEXT NOT NULL, changed_time INTEGER NOT NULL,
      report INTEGER NOT NULL, build TEXT, builds TEXT NOT NULL, regressed_time INTEGER) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS crash_states_changed ON crash_states (changed_time);
    CREATE TABLE IF NOT EXISTS ended_sessions (nonce TEXT PRIMARY KEY, expires INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS ended_sessions_expires ON ended_sessions (expires);
    """

  private let executor = DispatchQueueExecutor(label: "prism.collector.page")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let connection: SQLiteConnection

  /// - Parameter folder: the state folder; the file is made if it is missing.
  init(folder: String) throws(SQLiteError) {
    connection = try SQLiteConnection(.init(path: folder + "/page.db"))
    try connection.execute("PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    try connection.execute(Self.schema)
  }

  private struct Row: SQLiteRecord {
    enum Column: String, SQLiteColumn {
      case fingerprint, state, who
      case changedTime = "changed_time"
      case report, build, builds
      case regressedTime = "regressed_time"
    }

    let state: CrashState

    func bind(to insert: SQLiteInsert<Column>) {
      insert.bind(.fingerprint, state.fingerprint)
      insert.bind(.state, state.condition.rawValue)
      insert.bind(.who, state.who)
      insert.bind(.changedTime, state.changedTime)
      insert.bind(.report, state.report)
      insert.bind(.build, state.build)
      insert.bind(.builds, state.buildsText)
      insert.bind(.regressedTime, state.regressedTime)
    }

    static func state(_ row: SQLiteRow<Column>) -> CrashState {
      CrashState(
        fingerprint: row.text(.fingerprint), condition: CrashState.Condition(rawValue: row.text(.state)) ?? .open,
        who: row.text(.who), changedTime: row.int64(.changedTime), report: row.int64(.report),
        build: row.isNull(.build) ? nil : row.text(.build), builds: CrashState.builds(row.text(.builds)),
        regressedTime: row.integer(.regressedTime))
    }
  }

  func all() throws(StoreFailure) -> [CrashState] {
    try perform { () throws(SQLiteError) in
      var states: [CrashState] = []
      try connection.prepare("SELECT \(Row.Column.list) FROM crash_states LIMIT \(CrashStates.countMax)")
        .forEachRow(of: Row.Column.self) { states.append(Row.state($0)) }
      return states
    }
  }

  func put(_ state: CrashState) throws(StoreFailure) {
    try perform { () throws(SQLiteError) in
      try connection.transaction { () throws(SQLiteError) in
        try connection.prepare(Row.insert(into: "crash_states", "OR REPLACE")).run(inserting: Row(state: state))
        try connection.execute(
          """
          DELETE FROM crash_states WHERE fingerprint IN (SELECT fingerprint FROM crash_states
            ORDER BY changed_time DESC, fingerprint LIMIT -1 OFFSET \(CrashStates.countMax))
          """)
      }
    }
  }

  func markRegressed(_ state: CrashState, at time: Int64) throws(StoreFailure) -> Bool {
    try perform { () throws(SQLiteError) in
      let statement = try connection.prepare(
        """
        UPDATE crash_states SET state = 'regressed', regressed_time = :time
        WHERE fingerprint = :fingerprint AND state = 'resolved' AND changed_time = :changed
        """)
      statement.bind(":time", time)
      statement.bind(":fingerprint", state.fingerprint)
      statement.bind(":changed", state.changedTime)
      try statement.run()
      return connection.changes > 0
    }
  }

  private enum SessionColumn: String, SQLiteColumn { case nonce, expires }

  func endSession(_ nonce: String, expires: Int64, now: Int64) throws(StoreFailure) {
    try perform { () throws(SQLiteError) in
      let insert = try connection.prepare("INSERT OR IGNORE INTO ended_sessions VALUES (:nonce, :expires)")
      insert.bind(":nonce", nonce)
      insert.bind(":expires", expires)
      try insert.run()
      try connection.execute(
        """
        DELETE FROM ended_sessions WHERE expires < \(now);
        DELETE FROM ended_sessions WHERE nonce IN (SELECT nonce FROM ended_sessions
          ORDER BY expires DESC, nonce LIMIT -1 OFFSET \(EndedSessionRule.countMax))
        """)
    }
  }

  func endedSessions() throws(StoreFailure) -> Set<String> {
    try perform { () throws(SQLiteError) in
      var nonces: Set<String> = []
      try connection.prepare("SELECT \(SessionColumn.list) FROM ended_sessions")
        .forEachRow(of: SessionColumn.self) { nonces.insert($0.text(.nonce)) }
      return nonces
    }
  }

  private func perform<Result>(_ body: () throws(SQLiteError) -> Result) throws(StoreFailure) -> Result {
    do throws(SQLiteError) { return try body() } catch { throw .unavailable("page.db: \(error.description)") }
  }
}
