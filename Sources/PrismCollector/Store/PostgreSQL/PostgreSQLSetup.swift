public import PrismSQL

/// Opens connections, and brings the schema to its version.
public struct PostgreSQLSetup: Sendable {
  /// The reason why a database is not used.
  public enum Refusal: Error, Equatable, CustomStringConvertible {
    case newerSchema(found: Int64)
    /// Of a build before the first published version.
    case olderSchema(found: Int64)
    case noSchema(String)
    /// A store is being carried into it, or a run that did that was interrupted.
    case noIdentity
    case failed(PostgreSQLError)

    /// The fault and the remedy, in one line.
    public var description: String {
      switch self {
      case .newerSchema(let found):
        "the database has version \(found) of the schema, this program knows \(PostgreSQLSchema.version): install the newer "
          + "prism-collector here, too"
      case .olderSchema(let found):
        "the database has version \(found) of the schema, of a build before the first published version, which this program does not read: nothing "
          + "was changed in it; name an empty database"
      case .noSchema(let cause):
        "the tables can't be made: \(cause); let their owner run `prism-collector migrate`, or grant CREATE on the schema"
      case .noIdentity:
        "a store is not carried whole into the database: run `prism-collector migrate --from` to its end, or name an empty database"
      case .failed(let error): error.description
      }
    }

    /// Whether waiting may help.
    var isTemporary: Bool {
      guard case .failed(let error) = self else { return false }
      switch error.kind {
      case .lost, .late, .unconfirmed: return true
      // Starting up, shutting down, too many connections, resources; no database, no role, no right.
      case .refused(let state): return state.hasPrefix("57P") || state.hasPrefix("53") || state.hasPrefix("40")
      }
    }
  }

  let target: PostgreSQLTarget
  /// Of connecting, and of each statement but a commit.
  var deadline: Duration
  /// Reports are read by the indexes of their ids, by one process. The statistics of the day that is written are missing or
  /// old. With them a page would be a scan of that whole day, by several processes. A scan of a small table that has no index
  /// has a high price then, for which PostgreSQL would compile each question for 100 ms.
  var isByIndex = false
  /// How long a transaction may wait for its next statement. A replica that hangs holds the streams of its packets for as long.
  var idleMax: Duration?

  private static let byIndex = [
    "enable_seqscan = off", "enable_bitmapscan = off", "max_parallel_workers_per_gather = 0", "jit = off",
  ]

  var byIndex: PostgreSQLSetup {
    var setup = self
    setup.isByIndex = true
    return setup
  }

  /// Brings the schema to this program's version. - Returns: the version.
  public static func migrate(_ target: PostgreSQLTarget) throws(Refusal) -> Int {
    _ = try PostgreSQLSetup(target: target, deadline: .seconds(60)).connect(needsIdentity: false)
    return PostgreSQLSchema.version
  }

  /// Connects, and holds the schema to this program's version.
  /// - Parameter needsIdentity: false for who carries a store into the database.
  func connect(needsIdentity: Bool = true) throws(Refusal) -> PostgreSQLConnection {
    let (connection, found): (PostgreSQLConnection, Int64)
    do throws(PostgreSQLError) { (connection, found) = try open() } catch { throw .failed(error) }
    guard found <= PostgreSQLSchema.version else { throw .newerSchema(found: found) }
    guard found == 0 || found >= PostgreSQLSchema.firstVersion else { throw .olderSchema(found: found) }
    if found < PostgreSQLSchema.version { try migrate(connection) }
    let marks: Int
    do throws(PostgreSQLError) {
      marks = needsIdentity ? try connection.query("SELECT 1 FROM store_mark", by: Deadline(deadline)).count : 1
    } catch { throw .failed(error) }
    guard marks > 0 else { throw .noIdentity }
    return connection
  }

  private func open() throws(PostgreSQLError) -> (PostgreSQLConnection, Int64) {
    let by = Deadline(deadline)
    let connection = try PostgreSQLConnection(target, by: by)
    let session = try connection.query(
      "SELECT pg_backend_pid(), current_setting('synchronous_commit') IN ('off', 'local')", by: by)
    let settings = settings(commitsEarly: session.bool(0, 1))
    if session.int(0, 0) == connection.backendID {
      try connection.execute(settings.map { "SET \($0)" }.joined(separator: ";"), by: by)
    } else {
      connection.transactionSettings = settings.map { "SET LOCAL \($0)" }
    }
    return (connection, try Self.version(connection, by))
  }

  /// A waiting statement ends before the caller's deadline, so that the connection can be kept. Settings that answer before the
  /// disk are overruled.
  private func settings(commitsEarly: Bool) -> [String] {
    let milliseconds = max(100, deadline.components.seconds * 1000 - 500)
    let idleMilliseconds = idleMax.map { $0.components.seconds * 1000 } ?? milliseconds * 2
    return [
      "client_min_messages = warning", "TimeZone = 'UTC'", "lock_timeout = \(milliseconds)",
      "statement_timeout = \(milliseconds)", "idle_in_transaction_session_timeout = \(idleMilliseconds)",
    ] + (isByIndex ? Self.byIndex : []) + (commitsEarly ? ["synchronous_commit = on"] : [])
  }

  /// 0: there are no tables.
  private static func version(_ connection: PostgreSQLConnection, _ by: Deadline) throws(PostgreSQLError) -> Int64 {
    // A statement that opens no relation would answer what was known before another replica's migration.
    let exists = try connection.query(
      "SELECT to_regclass('prism_schema') IS NOT NULL FROM pg_namespace LIMIT 1", by: by)
    guard exists.bool(0, 0) else { return 0 }
    return try connection.query("SELECT version FROM prism_schema", by: by).int(0, 0)
  }

  /// One replica does it, the others wait for its end.
  private func migrate(_ connection: PostgreSQLConnection) throws(Refusal) {
    let by = Deadline(deadline * 6)
    do throws(PostgreSQLError) {
      try connection.transaction(by: by) { () throws(PostgreSQLError) in
        _ = try connection.query("SELECT pg_advisory_xact_lock(\(PostgreSQLSchema.Lock.migration.key))", by: by)
        let found = Int(try Self.version(connection, by))
        let steps =
          found == 0
          ? [PostgreSQLSchema.sql] : Array(PostgreSQLSchema.migrations.dropFirst(found - PostgreSQLSchema.firstVersion))
        for step in steps { try connection.execute(step, by: by) }
        try connection.execute("UPDATE prism_schema SET version = \(PostgreSQLSchema.version)", by: by)
        try PostgreSQLError.only { try PostgreSQLDays(statements: connection.statements(by: by)).add() }
      }
    } catch {
      if case .refused(state: "42501") = error.kind { throw .noSchema(error.description) }
      throw .failed(error)
    }
  }
}

extension PostgreSQLDriver {
  /// - Parameter lasting: of a transaction; nil: as long as connecting.
  convenience init(_ setup: PostgreSQLSetup, lasting: Duration? = nil) {
    self.init(lasting: lasting ?? setup.deadline) { try setup.connect() }
  }
}
