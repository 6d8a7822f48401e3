import PrismConfig
import PrismSQL
import PrismSQLite

/// The partitions: of blocks and payloads by the day on which they were received, of packet ids by the day on which they
/// were made. Days are those of UTC, by the database's clock. Ids of devices with a wrong clock lie in `packets_other`. Each step is
/// within a transaction.
struct PostgreSQLDays {
  /// Days that are made before they begin.
  private static let ahead = 3
  /// Of this many days packet ids are known.
  static let idDays = 30

  let statements: SQLStatements

  /// Makes the partitions that are missing.
  func add() throws {
    let missing = try statements.texts(
      """
      SELECT k.parent, g.day::date::text
      FROM (VALUES ('packets', \(Self.idDays)), ('blocks', 0), ('payloads', 0)) k (parent, back), generate_series(
        ((now() AT TIME ZONE 'UTC')::date - k.back)::timestamp, ((now() AT TIME ZONE 'UTC')::date + \(Self.ahead))::timestamp,
        interval '1 day') g (day)
      WHERE to_regclass(k.parent || '_' || to_char(g.day, 'YYYYMMDD')) IS NULL ORDER BY 1, 2
      """)
    for row in missing { try add(day: row[1], to: row[0]) }
  }

  /// Makes the partitions of reports that were received on a day in the past. - Parameter day: YYYY-MM-DD.
  func add(day: String) throws { for parent in ["blocks", "payloads"] { try add(day: day, to: parent) } }

  private func add(day: String, to parent: String) throws {
    let name = "\(parent)_\(day.filter { $0 != "-" })"
    let found = try statements.texts(
      """
      SELECT ($2::date + 1)::text, prism_day_start($2::date)::text, prism_day_start($2::date + 1)::text
      WHERE to_regclass($1) IS NULL
      """, [name, day])
    guard let found = found.first else { return }
    let (from, to) =
      switch parent {
      case "packets": (found[1], found[2])
      case "blocks": ("\(day) 00:00:00+00", "\(found[0]) 00:00:00+00")
      default: (day, found[0])
      }
    try statements.run("CREATE TABLE \(name) (LIKE \(parent) INCLUDING ALL)")
    if parent == "packets" {
      try statements.run("LOCK TABLE packets_other IN ACCESS EXCLUSIVE MODE")
      try statements.run(
        """
        WITH moved AS (DELETE FROM packets_other WHERE packet >= '\(from)' AND packet < '\(to)' RETURNING *)
          INSERT INTO \(name) SELECT * FROM moved
        """)
    }
    try statements.run("ALTER TABLE \(parent) ATTACH PARTITION \(name) FOR VALUES FROM ('\(from)') TO ('\(to)')")
  }

  // MARK: Days that are over

  /// The result for the oldest day that is due.
  enum Detaching: Equatable {
    case nothingIsDue
    /// An output has not taken all of it.
    case held(isOverLag: Bool)
    /// - Parameter skipped: how many reports each output had not taken.
    case detached(day: String, rows: Int64, skipped: [String: Int])
  }

  private enum OutputColumn: String, SQLiteColumn { case output, cursor }

  /// Takes the oldest day out that is over `days` days old, of blocks and payloads. A day of which an output has not taken
  /// all stays; with `skip` only until such days have too many bytes.
  func detachReports(olderThan days: Int, _ retention: Retention) throws -> Detaching {
    guard let day = try due("blocks", olderThan: days) else { return .nothingIsDue }
    let waits = try waits(for: day, olderThan: days, retention.outputs)
    let isOverLag = waits.bytes > retention.outputLagBytes
    if !waits.outputs.isEmpty, retention.onLag != .skip || !isOverLag { return .held(isOverLag: isOverLag) }
    var skipped: [String: Int] = [:]
    for output in waits.outputs {
      let count = try statements.integer(
        "SELECT coalesce(sum(least(rows, last - $1)), 0)::bigint FROM blocks_\(day) WHERE last > $1",
        [output.int64(.cursor)])
      skipped[output.text(.output)] = Int(count ?? 0)
    }
    let rows = try statements.integer("SELECT coalesce(sum(rows), 0)::bigint FROM blocks_\(day)") ?? 0
    try statements.run("ALTER TABLE blocks DETACH PARTITION blocks_\(day)")
    if try statements.run("SELECT 1 FROM pg_class WHERE oid = to_regclass($1) AND relispartition", ["payloads_\(day)"])
      > 0
    {
      try statements.run("ALTER TABLE payloads DETACH PARTITION payloads_\(day)")
    }
    try statements.run("DELETE FROM days WHERE to_char(day, 'YYYYMMDD') = $1", [day])
    return .detached(day: day, rows: rows, skipped: skipped)
  }

  /// The outputs that have not taken all of a day, and the bytes of all days that are due. An output that is not in this
  /// replica's configuration waits for nothing once no replica fed it for a week.
  private func waits(
    for day: String, olderThan days: Int, _ names: [String]
  ) throws -> (outputs: [SQLRow<OutputColumn>], bytes: Int64) {
    let outputs = try statements.rows(
      of: OutputColumn.self,
      """
      FROM (\(Self.outputs)) o WHERE cursor < (SELECT max(last) FROM blocks_\(day)) ORDER BY 1
      """, [PostgreSQLArray.text(names)])
    let bytes = try statements.integer(
      """
      SELECT coalesce(sum(pg_total_relation_size(i.inhrelid)), 0)::bigint FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent IN ('blocks'::regclass, 'payloads'::regclass)
        AND right(c.relname::text, 8) < to_char((now() AT TIME ZONE 'UTC')::date - \(days), 'YYYYMMDD')
      """)
    return (outputs, bytes ?? 0)
  }

  /// The days of blocks, for rules. - Parameter end: reports from this id on are not final.
  func ruled(_ retention: Retention, end: Int64) throws -> RuledRetention.Days {
    let numbers = try statements.texts(
      """
      SELECT to_date(right(c.relname::text, 8), 'YYYYMMDD') - date '1970-01-01' FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'blocks'::regclass AND c.relname ~ '_[0-9]{8}$' ORDER BY 1
      """)
    let held = try statements.integer(
      "SELECT min(cursor) + 1 FROM (\(Self.outputs)) o", [PostgreSQLArray.text(retention.outputs)])
    let today = "SELECT ((now() AT TIME ZONE 'UTC')::date - date '1970-01-01')::bigint"
    return RuledRetention.Days(
      numbers: numbers.compactMap { Int64($0[0]) }, today: try statements.integer(today) ?? 0,
      firstReport: {
        try statements.integer(
          "SELECT min(id) FROM blocks WHERE received >= to_timestamp($1::bigint)", [($0 + 1) * 86_400])
      }, served: try statements.fact(Self.servedFact) ?? 0, end: end,
      held: held, keptDays: retention.days)
  }

  /// Those that reports wait for, with their cursors; `$1` are the names in this replica's configuration.
  private static let outputs = """
    SELECT output, cursor FROM outputs WHERE output = ANY ($1) OR seen > now() - interval '7 days'
    UNION SELECT name, 0 FROM unnest($1::text[]) n (name) WHERE name NOT IN (SELECT output FROM outputs)
    """

  /// Takes the oldest day of packet ids out, and notes that ids up to its end are forgotten.
  func detachPackets() throws -> Bool {
    guard let day = try due("packets", olderThan: Self.idDays) else { return false }
    try statements.run(
      "UPDATE forgotten SET packet = greatest(packet, prism_day_start(to_date($1, 'YYYYMMDD') + 1))", [day])
    try statements.run("ALTER TABLE packets DETACH PARTITION packets_\(day)")
    return true
  }

  /// Drops what was taken out, one table a call. - Returns: whether there was one.
  func dropDetached() throws -> Bool {
    let found = try statements.text(
      """
      SELECT c.relname::text FROM pg_class c WHERE c.relkind = 'r' AND pg_table_is_visible(c.oid) AND NOT c.relispartition
        AND c.relname ~ '^(blocks|payloads|packets)_[0-9]{8}$'
        AND right(c.relname::text, 8) < to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD') LIMIT 1
      """)
    if let found { try statements.run("DROP TABLE \(found)") }
    return found != nil
  }

  /// Of each stream whose device has a wrong clock, keeps the newest 1,024 ids.
  func pruneOthers() throws {
    try statements.run(
      """
      WITH numbered AS (
        SELECT packet, stream, row_number() OVER (PARTITION BY stream ORDER BY packet DESC) AS number FROM packets_other),
      gone AS (DELETE FROM packets_other o USING numbered k
        WHERE k.number > 1024 AND o.packet = k.packet AND o.stream = k.stream RETURNING o.packet, o.stream),
      newest AS (SELECT DISTINCT ON (stream, is_set) stream, packet, packet >= '\(PostgreSQLSchema.firstSetID)' AS is_set
        FROM gone ORDER BY stream, is_set, packet DESC)
      UPDATE streams s SET
        forgotten = greatest(s.forgotten, (SELECT n.packet FROM newest n WHERE n.stream = s.id AND n.is_set)),
        forgotten_unset = greatest(s.forgotten_unset, (SELECT n.packet FROM newest n WHERE n.stream = s.id AND NOT n.is_set))
      WHERE s.id IN (SELECT stream FROM newest)
      """)
    try statements.run("DELETE FROM replicas WHERE seen < now() - interval '1 day'")
    try statements.run(
      """
      DELETE FROM facts WHERE name LIKE '\(Self.dayFact)%' AND to_regclass('blocks_' || right(name, 8)) IS NULL
        AND to_regclass('packets_' || right(name, 8)) IS NULL
      """)
  }

  /// The oldest day that may be dropped, as `YYYYMMDD`.
  private func due(_ parent: String, olderThan days: Int) throws -> String? {
    let over = try statements.texts(
      """
      SELECT right(c.relname::text, 8) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = '\(parent)'::regclass AND c.relname ~ '_[0-9]{8}$'
        AND right(c.relname::text, 8) < to_char((now() AT TIME ZONE 'UTC')::date - \(days), 'YYYYMMDD') ORDER BY 1
      """
    ).compactMap { Int64($0[0]) }
    let served = try statements.fact(Self.servedFact) ?? 0
    // A clock that was wrong wrote into a day that is long over.
    let old = try over.filter { day in
      try statements.fact("\(Self.dayFact)\(day)").map { served - $0 >= Int64(days) * 86_400 } ?? true
    }
    let due = try statements.due(parent, of: old, keptDays: Int64(days), served: served)
    return old.first { $0 <= due }.map { String($0) }
  }

  /// With the day behind it: the seconds of service when the database's clock said it last.
  private static let dayFact = "day."

  /// The time that collectors served this database. One replica at a time, within the lock of the upkeep.
  private static let (servedFact, servedAtFact) = (ServiceTime.fact, "served_at")

  /// Adds the time since the last note of any replica. It is no more than this replica measured itself, so a step of the
  /// database's clock does not count. It is no more than that clock says, so two replicas do not count a minute twice.
  /// - Returns: seconds since 1970 by the database's clock.
  func noteService(ownSeconds: Int64) throws -> Int64 {
    let now = try statements.integer("SELECT extract(epoch FROM clock_timestamp())::bigint") ?? 0
    let passed = now - (try statements.fact(Self.servedAtFact) ?? now)
    let served = try (statements.fact(Self.servedFact) ?? 0) + max(0, min(ownSeconds, passed))
    try statements.set(Self.servedFact, served)
    try statements.set(Self.servedAtFact, now)
    if let day = try statements.text("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')") {
      try statements.set(Self.dayFact + day, served)
    }
    return now
  }
}
