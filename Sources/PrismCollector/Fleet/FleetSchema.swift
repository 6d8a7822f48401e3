import PrismSQLite

/// The tables of `FleetDatabase`, in the words of either database.
enum FleetSchema {
  /// Of `fleet.db`. PostgreSQL's tables have the version of the whole schema there.
  private static let version = 1

  /// In the order in which they are made, and carried to another store.
  static let tables = [
    FleetTable(
      "tokens",
      ["hash text!", "key_id text!", "devices_max bigint!", "devices bigint!", "expire_time bigint!", "device text"],
      key: "hash"),
    FleetTable(
      "devices",
      [
        "device text!", "key_id text", "enrolled_time bigint", "token text", "info text", "revoked_time bigint",
        "public_key text", "generation bigint!",
      ], key: "device"),
    FleetTable(
      "dictionaries", ["namespace text!", "id bigint!", "made_time bigint!", "content bytes!"], key: "namespace, id"),
    FleetTable(
      "crash_states",
      [
        "fingerprint text!", "state text!", "who text!", "changed_time bigint!", "report bigint!", "build text",
        "builds text!", "regressed_time bigint",
      ], key: "fingerprint"),
    FleetTable("ended_sessions", ["nonce text!", "expires bigint!"], key: "nonce"),
    FleetTable("remote_facts", ["name text!", "value bigint!"], key: "name"),
    FleetTable(
      "remote_entries", ["namespace text!", "entry text!", "is_removed bigint!", "update_time bigint!"],
      key: "namespace"),
    FleetTable("rollouts", ["id bigint!", "entries text!"], key: "id"),
    FleetTable(
      "rollout_events",
      ["time bigint!", "rollout bigint!", "state text!", "percent bigint!", "groups text!", "who text!"], key: "time"),
    FleetTable(
      "configured_devices",
      [
        "device text!", "asked_time bigint!", "update_time bigint", "version bigint", "last_applied bigint",
        "last_failed text", "reason text", "given_time bigint",
      ], key: "device"),
  ]

  /// The devices that every collector asks for each 2 s: few of a fleet.
  static let notable = "revoked_time IS NOT NULL OR generation > 0"

  private static let indexes = """
    CREATE INDEX devices_notable ON devices (device) WHERE \(notable);
    CREATE INDEX crash_states_changed_time ON crash_states (changed_time);
    CREATE INDEX ended_sessions_time ON ended_sessions (expires);
    CREATE INDEX configured_devices_time ON configured_devices (asked_time);

    """

  private static func statements(_ type: (FleetTable.Kind) -> String) -> String {
    tables.map { $0.statement(type) }.joined() + indexes
  }

  static let postgreSQL = statements { $0 == .text ? "text COLLATE \"C\"" : $0 == .bytes ? "bytea" : "bigint" }

  // MARK: SQLite

  /// Makes the tables of a new file. - Throws: it is of a newer version.
  static func prepare(_ connection: SQLiteConnection) throws(SQLiteError) {
    let found = try connection.version()
    guard found <= version else {
      throw SQLiteError(
        code: -1,
        message:
          "it is of version \(found), this prism-collector knows versions up to \(version); install the newer one")
    }
    if found == version { return }
    try connection.transaction { () throws(SQLiteError) in
      // Another process may have been first.
      guard try connection.version() == 0 else { return }
      try connection.execute(statements { $0 == .bytes ? "BLOB" : $0 == .text ? "TEXT" : "INTEGER" })
      try connection.execute("PRAGMA user_version = \(version)")
    }
  }
}

/// A table whose columns both databases have. A column is its name and its kind, with `!` where it is never NULL.
struct FleetTable: Sendable {
  enum Kind: String { case text, bigint, bytes }
  typealias Column = (name: String, kind: Kind, isRequired: Bool)

  let name: String
  let columns: [Column]
  private let key: String

  init(_ name: String, _ columns: [String], key: String) {
    (self.name, self.key) = (name, key)
    self.columns = columns.map { column in
      let words = column.split(separator: " ")
      let kind = Kind(rawValue: words[1].filter { $0 != "!" })
      guard words.count == 2, let kind else { preconditionFailure("\(column) is no column") }
      return (String(words[0]), kind, words[1].hasSuffix("!"))
    }
  }

  fileprivate func statement(_ type: (Kind) -> String) -> String {
    let lines = columns.map { "\($0.name) \(type($0.kind))\($0.isRequired ? " NOT NULL" : "")" }
    return "CREATE TABLE \(name) (\((lines + ["PRIMARY KEY (\(key))"]).joined(separator: ", ")));\n"
  }
}
