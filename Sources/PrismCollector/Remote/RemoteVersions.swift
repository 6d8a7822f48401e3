/// Counts versions of remote configuration in PostgreSQL, so that replicas with the same files have the same version, and a
/// device never takes one of them for a rollback.
struct RemoteVersions {
  struct Version: Sendable, Equatable {
    var number: Int64
    /// The time of the change, as `RemoteConfigurationStore.updateTime`.
    var time: Int64
    /// Of all that is served.
    var digest: String
  }

  static let schema = """
    CREATE TABLE remote_versions (number bigint PRIMARY KEY, update_time bigint NOT NULL, digest text NOT NULL);

    """
  private static let newest = "SELECT number, update_time, digest FROM remote_versions ORDER BY number DESC LIMIT 1"
  /// Versions before the newest one that are kept.
  private static let keptMax = 100

  /// The files changed here, and no version of them is noted for all replicas.
  var mustClaim = false
  /// Another replica serves newer files.
  private(set) var isBehind = false
  private var lookedAt: Duration?
  private var session: PostgreSQLSession

  init(_ target: PostgreSQLTarget) { session = PostgreSQLSession(target) }

  /// nil: no replica has served anything.
  mutating func newest() throws(PostgreSQLSetup.Refusal) -> Version? {
    try session.perform { (connection, by) throws(PostgreSQLError) in try Self.newest(connection, by) }
  }

  private static func newest(_ connection: PostgreSQLConnection, _ by: Deadline) throws(PostgreSQLError) -> Version? {
    let found = try connection.query(newest, by: by)
    guard found.count == 1 else { return nil }
    return Version(number: found.int(0, 0), time: found.int(0, 1), digest: found.text(0, 2))
  }

  /// Once a second, and after a change here.
  func isDue(now: Duration) -> Bool { mustClaim || lookedAt.map { now - $0 >= .seconds(1) } ?? true }

  /// - Parameter mine: what is served here. - Returns: its version for all replicas; nil: another replica has a newer one.
  mutating func reconcile(_ mine: Version, now: Duration) throws(PostgreSQLSetup.Refusal) -> Version? {
    lookedAt = now
    let newest = try newest()
    isBehind = newest.map { $0.digest != mine.digest && $0.number >= mine.number && !mustClaim } ?? false
    guard !isBehind else { return nil }
    let version = newest.map { Self.covers($0, mine) } == true ? newest : try claim(mine)
    mustClaim = false
    return version
  }

  private static func covers(_ newest: Version, _ mine: Version) -> Bool {
    newest.digest == mine.digest && newest.number >= mine.number
  }

  /// Makes it the newest version, with a number and a time behind all others.
  private mutating func claim(_ mine: Version) throws(PostgreSQLSetup.Refusal) -> Version {
    try session.perform { (connection, by) throws(PostgreSQLError) in
      try connection.execute("LOCK TABLE remote_versions IN EXCLUSIVE MODE", by: by)
      var version = mine
      if let newest = try Self.newest(connection, by) {
        guard !Self.covers(newest, mine) else { return newest }
        let isSame = newest.digest == mine.digest
        version.number = max(mine.number, newest.number + 1)
        version.time = max(mine.time, isSame ? newest.time : newest.time + 2)
      }
      _ = try connection.query(
        "INSERT INTO remote_versions VALUES ($1, $2, $3)",
        [String(version.number), String(version.time), version.digest], by: by)
      _ = try connection.query(
        "DELETE FROM remote_versions WHERE number < $1", [String(version.number - Int64(Self.keptMax))], by: by)
      return version
    }
  }
}
