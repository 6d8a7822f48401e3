import PrismBase

/// States of crashes, and sessions that were signed out, in PostgreSQL, for all replicas.
actor PostgreSQLCrashStateStore: CrashStateStore, EndedSessionStore {
  static let schema = """
    CREATE TABLE crash_states (fingerprint text COLLATE "C" PRIMARY KEY, state text NOT NULL, who text NOT NULL,
      changed_time bigint NOT NULL, report bigint NOT NULL, build text, builds text NOT NULL, regressed_time bigint);
    CREATE INDEX crash_states_changed ON crash_states (changed_time);

    """
  static let sessions = """
    CREATE TABLE ended_sessions (nonce text PRIMARY KEY, expires bigint NOT NULL);
    CREATE INDEX ended_sessions_expires ON ended_sessions (expires);

    """
  private static let columns = "fingerprint, state, who, changed_time, report, build, builds, regressed_time"

  private let executor = DispatchQueueExecutor(label: "prism.collector.page")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private var session: PostgreSQLSession

  /// Connects with the first call.
  init(_ target: PostgreSQLTarget) { session = PostgreSQLSession(target) }

  func all() throws(StoreFailure) -> [CrashState] {
    try perform { (connection, by) throws(PostgreSQLError) in
      let rows = try connection.query(
        "SELECT \(Self.columns) FROM crash_states LIMIT \(CrashStates.countMax)", by: by)
      return (0..<rows.count).map { row in
        CrashState(
          fingerprint: rows.text(row, 0), condition: CrashState.Condition(rawValue: rows.text(row, 1)) ?? .open,
          who: rows.text(row, 2), changedTime: rows.int(row, 3), report: rows.int(row, 4),
          build: rows.isNull(row, 5) ? nil : rows.text(row, 5), builds: CrashState.builds(rows.text(row, 6)),
          regressedTime: rows.isNull(row, 7) ? nil : rows.int(row, 7))
      }
    }
  }

  func put(_ state: CrashState) throws(StoreFailure) {
    try perform { (connection, by) throws(PostgreSQLError) in
      _ = try connection.query(
        """
        INSERT INTO crash_states (\(Self.columns)) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (fingerprint) DO UPDATE SET state = excluded.state, who = excluded.who,
          changed_time = excluded.changed_time, report = excluded.report, build = excluded.build,
          builds = excluded.builds, regressed_time = excluded.regressed_time
        """,
        [
          state.fingerprint, state.condition.rawValue, state.who, String(state.changedTime), String(state.report),
          state.build, state.buildsText, state.regressedTime.map { String($0) },
        ], by: by)
      _ = try connection.query(
        """
        DELETE FROM crash_states WHERE fingerprint IN (SELECT fingerprint FROM crash_states
          ORDER BY changed_time DESC, fingerprint OFFSET \(CrashStates.countMax))
        """, by: by)
    }
  }

  func markRegressed(_ state: CrashState, at time: Int64) throws(StoreFailure) -> Bool {
    try perform { (connection, by) throws(PostgreSQLError) in
      try connection.query(
        """
        UPDATE crash_states SET state = 'regressed', regressed_time = $1
        WHERE fingerprint = $2 AND state = 'resolved' AND changed_time = $3 RETURNING 1
        """, [String(time), state.fingerprint, String(state.changedTime)], by: by
      ).count > 0
    }
  }

  func endSession(_ nonce: String, expires: Int64, now: Int64) throws(StoreFailure) {
    try perform { (connection, by) throws(PostgreSQLError) in
      _ = try connection.query(
        "INSERT INTO ended_sessions VALUES ($1, $2) ON CONFLICT DO NOTHING", [nonce, String(expires)], by: by)
      _ = try connection.query("DELETE FROM ended_sessions WHERE expires < $1", [String(now)], by: by)
      _ = try connection.query(
        """
        DELETE FROM ended_sessions WHERE nonce IN (SELECT nonce FROM ended_sessions
          ORDER BY expires DESC, nonce OFFSET \(EndedSessionRule.countMax))
        """, by: by)
    }
  }

  func endedSessions() throws(StoreFailure) -> Set<String> {
    try perform { (connection, by) throws(PostgreSQLError) in
      let rows = try connection.query("SELECT nonce FROM ended_sessions", by: by)
      return Set((0..<rows.count).map { rows.text($0, 0) })
    }
  }

  private func perform<Result>(
    _ body: (PostgreSQLConnection, Deadline) throws(PostgreSQLError) -> Result
  ) throws(StoreFailure) -> Result {
    do throws(PostgreSQLSetup.Refusal) { return try session.perform(body) } catch {
      throw .unavailable(error.description)
    }
  }
}
