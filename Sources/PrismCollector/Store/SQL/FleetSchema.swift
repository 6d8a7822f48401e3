import PrismSQL
import PrismSQLite

/// The tables of `FleetDatabase`, in the words of either database.
enum FleetSchema {
  /// Of `fleet.db`. PostgreSQL's tables have the version of the whole schema there.
  private static var version: Int { firstVersion + steps.count }
  private static let steps = SchemaStep.of(.fleet)
  /// The one of the first published version.
  private static let firstVersion = 2

  /// In the order in which they are made, and carried to another store.
  static let tables: [SQLTable] =
    [
      SQLTable(
        "tokens",
        [
          "hash text!", "key_id text!", "devices_max bigint!", "devices bigint!", "expire_time bigint!", "device text",
          "tags text",
        ], key: "hash"),
      SQLTable(
        "devices",
        [
          "device text!", "key_id text", "enrolled_time bigint", "token text", "info text", "revoked_time bigint",
          "public_key text", "generation bigint!",
        ], key: "device"),
      SQLTable(
        "dictionaries", ["namespace text!", "id bigint!", "made_time bigint!", "content bytes!"], key: "namespace, id"),
      SQLTable(
        "crash_states",
        [
          "fingerprint text!", "state text!", "who text!", "changed_time bigint!", "report bigint!", "build text",
          "facts text!", "regressed_time bigint",
        ], key: "fingerprint"),
      SQLTable("ended_sessions", ["nonce text!", "expires bigint!"], key: "nonce"),
      SQLTable("remote_facts", ["name text!", "value bigint!"], key: "name"),
      SQLTable(
        "remote_entries", ["namespace text!", "entry text!", "is_removed bigint!", "update_time bigint!"],
        key: "namespace"),
      SQLTable("rollouts", ["id bigint!", "entries text!"], key: "id"),
      SQLTable(
        "rollout_events",
        ["time bigint!", "rollout bigint!", "state text!", "percent bigint!", "groups text!", "who text!"], key: "time"),
      SQLTable(
        "configured_devices",
        [
          "device text!", "asked_time bigint!", "update_time bigint", "version bigint", "last_applied bigint",
          "last_failed text", "reason text", "given_time bigint", "is_proven bigint!",
        ], key: "device"),
      deviceFacts,
    ] + noticeTables + jobTables + triggerTables

  static let deviceFacts = SQLTable(
    "device_facts",
    ["device text!", "namespace text!", "app text!", "version text!", "crash_time bigint", "noted_time bigint!"],
    key: "device, namespace")

  static let noticeTables = [
    SQLTable(
      "notices",
      [
        "id text!", "receiver text!", "event text!", "time bigint!", "content text!", "state text!", "attempts bigint!",
        "due_time bigint!", "result text",
      ], key: "id"),
    SQLTable("notice_marks", ["name text!", "value bigint!"], key: "name"),
  ]

  static let jobTables = [
    SQLTable(
      "jobs",
      [
        "id text!", "namespace text!", "who text!", "expression text!", "change text!", "made_time bigint!",
        "expire_time bigint!", "per_minute bigint!", "failures_max bigint!", "state text!", "due_time bigint!",
      ], key: "id"),
    SQLTable(
      "job_devices",
      ["job text!", "device text!", "progress text!", "result text", "signature text", "changed_time bigint!"],
      key: "job, device"),
  ]

  static let triggerTables = [
    SQLTable(
      "trigger_windows", ["namespace text!", "rule text!", "devices bigint!", "end_time bigint!"],
      key: "namespace, rule"),
    SQLTable(
      "trigger_devices", ["namespace text!", "rule text!", "device text!"], key: "namespace, rule, device"),
  ]

  /// The devices that every collector asks for each 2 s: few of a fleet.
  static let notable = "revoked_time IS NOT NULL OR generation > 0"

  private static let indexes = """
    CREATE INDEX devices_notable ON devices (device) WHERE \(notable);
    CREATE INDEX crash_states_changed_time ON crash_states (changed_time);
    CREATE INDEX ended_sessions_time ON ended_sessions (expires);
    CREATE INDEX configured_devices_time ON configured_devices (asked_time);
    """ + noticeIndexes + jobIndexes

  static let noticeIndexes = """

    CREATE INDEX notices_due ON notices (receiver, state, due_time);
    CREATE INDEX notices_time ON notices (time);

    """

  static let jobIndexes = """

    CREATE INDEX job_devices_progress ON job_devices (job, progress, changed_time, device);

    """

  static let postgreSQL = tables.map(\.postgreSQL).joined() + indexes

  // MARK: SQLite

  /// Whether the file is such a database: an empty one is a copy that was cut off.
  static func isWhole(_ connection: SQLiteConnection) throws(SQLiteError) -> Bool {
    let names = tables.prefix(2).map { "'\($0.name)'" }.joined(separator: ", ")
    let found = try connection.firstInt("SELECT count(*) FROM sqlite_schema WHERE name IN (\(names))")
    return try connection.version() > 0 && found == 2
  }

  /// Makes the tables of a new file, or brings those of an earlier version to this one. - Throws: it is of a newer version.
  static func prepare(_ connection: SQLiteConnection) throws(SQLiteError) {
    let found = try connection.version()
    guard found == 0 || (firstVersion...version).contains(found) else {
      let advice = found > version ? "install the newer one" : "move it away: no published version wrote it"
      throw SQLiteError(
        code: -1, message: "it is of version \(found), this prism-collector reads version \(version); \(advice)")
    }
    if found == version { return }
    try connection.transaction { () throws(SQLiteError) in
      // Another process may have been first.
      let found = try connection.version()
      if found == version { return }
      if found == 0 { try connection.execute(tables.map(\.sqlite).joined() + indexes) }
      for step in steps.dropFirst(found == 0 ? steps.count : found - firstVersion) {
        try connection.execute(step.sqlite)
      }
      try connection.execute("PRAGMA user_version = \(version)")
    }
  }
}
