import PrismConfig

/// The partitions: of blocks and payloads by the day on which they were received, of packet ids by the day on which they
/// were made. Days are those of UTC, by the database's clock. Ids of devices with a wrong clock lie in `packets_other`.
struct PostgreSQLDays {
  /// Days that are made before they begin.
  private static let ahead = 3
  /// Of this many days packet ids are known.
  static let idDays = 30

  private let connection: PostgreSQLConnection

  init(_ connection: PostgreSQLConnection) { self.connection = connection }

  /// Makes the partitions that are missing. It runs within a transaction.
  func add(by deadline: Deadline) throws(PostgreSQLError) {
    let missing = try connection.query(
      """
      SELECT k.parent, to_char(g.day, 'YYYYMMDD'), g.day::date::text, (g.day::date + 1)::text
      FROM (VALUES ('packets', \(Self.idDays)), ('blocks', 0), ('payloads', 0)) k (parent, back), generate_series(
        ((now() AT TIME ZONE 'UTC')::date - k.back)::timestamp, ((now() AT TIME ZONE 'UTC')::date + \(Self.ahead))::timestamp,
        interval '1 day') g (day)
      WHERE to_regclass(k.parent || '_' || to_char(g.day, 'YYYYMMDD')) IS NULL ORDER BY 1, 2
      """, by: deadline)
    for row in 0..<missing.count {
      let (parent, name) = (missing.text(row, 0), "\(missing.text(row, 0))_\(missing.text(row, 1))")
      let (first, next) = (missing.text(row, 2), missing.text(row, 3))
      try connection.execute("CREATE TABLE \(name) (LIKE \(parent) INCLUDING ALL)", by: deadline)
      try connection.execute(Self.filling(parent, name, first, next), by: deadline)
    }
  }

  /// Makes the partitions of reports that were received on a day in the past. - Parameter day: YYYY-MM-DD.
  func add(day: String, by deadline: Deadline) throws(PostgreSQLError) {
    for parent in ["blocks", "payloads"] {
      let name = "\(parent)_\(day.filter { $0 != "-" })"
      let found = try connection.query(
        "SELECT to_regclass($1) IS NULL, ($2::date + 1)::text", [name, day], by: deadline)
      guard found.bool(0, 0) else { continue }
      try connection.execute("CREATE TABLE \(name) (LIKE \(parent) INCLUDING ALL)", by: deadline)
      try connection.execute(Self.filling(parent, name, day, found.text(0, 1)), by: deadline)
    }
  }

  private static func filling(_ parent: String, _ name: String, _ first: String, _ next: String) -> String {
    switch parent {
    case "packets":
      let (from, to) = ("prism_day_start('\(first)')", "prism_day_start('\(next)')")
      // Bounds must be constants.
      return """
        LOCK TABLE packets_other IN ACCESS EXCLUSIVE MODE;
        WITH moved AS (DELETE FROM packets_other WHERE packet >= \(from) AND packet < \(to) RETURNING *)
          INSERT INTO \(name) SELECT * FROM moved;
        DO $$ BEGIN
          EXECUTE format('ALTER TABLE packets ATTACH PARTITION \(name) FOR VALUES FROM (%L) TO (%L)', \(from), \(to));
        END $$
        """
    case "blocks":
      return """
        ALTER TABLE blocks ATTACH PARTITION \(name) FOR VALUES FROM ('\(first) 00:00:00+00') TO ('\(next) 00:00:00+00')
        """
    default:
      return "ALTER TABLE \(parent) ATTACH PARTITION \(name) FOR VALUES FROM ('\(first)') TO ('\(next)')"
    }
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

  /// The rule for days that outputs have not taken.
  struct Lag {
    /// Of this replica's configuration.
    var outputs: [String]
    var bytesMax: Int64
    var policy: LagPolicy
  }

  /// Takes the oldest day out that is over `days` days old, of blocks and payloads. A day of which an output has not taken
  /// all stays; with `skip` only until such days have too many bytes.
  func detachReports(
    olderThan days: Int, _ lag: Lag, _ facts: inout ServiceFacts, by deadline: Deadline
  ) throws(PostgreSQLError) -> Detaching {
    guard let day = try due("blocks", olderThan: days, &facts, by: deadline) else { return .nothingIsDue }
    let waits = try waits(for: day, olderThan: days, lag.outputs, by: deadline)
    let isOverLag = waits.bytes > lag.bytesMax
    if !waits.outputs.isEmpty, lag.policy != .skip || !isOverLag { return .held(isOverLag: isOverLag) }
    var skipped: [String: Int] = [:]
    for output in waits.outputs {
      let count = try connection.query(
        "SELECT coalesce(sum(least(rows, last - \(output.cursor))), 0)::bigint FROM blocks_\(day) WHERE last > \(output.cursor)",
        by: deadline)
      skipped[output.name] = Int(count.int(0, 0))
    }
    let rows = try connection.query("SELECT coalesce(sum(rows), 0)::bigint FROM blocks_\(day)", by: deadline).int(0, 0)
    try connection.execute("ALTER TABLE blocks DETACH PARTITION blocks_\(day)", by: deadline)
    if try isAttached("payloads_\(day)", by: deadline) {
      try connection.execute("ALTER TABLE payloads DETACH PARTITION payloads_\(day)", by: deadline)
    }
    try connection.execute("DELETE FROM days WHERE to_char(day, 'YYYYMMDD') = '\(day)'", by: deadline)
    return .detached(day: day, rows: rows, skipped: skipped)
  }

  /// The outputs that have not taken all of a day, and the bytes of all days that are due. An output that is not in this
  /// replica's configuration waits for nothing once no replica fed it for a week.
  private func waits(
    for day: String, olderThan days: Int, _ names: [String], by deadline: Deadline
  ) throws(PostgreSQLError) -> (outputs: [(name: String, cursor: Int64)], bytes: Int64) {
    let outputs = try connection.query(
      """
      SELECT output, cursor FROM (
        SELECT output, cursor FROM outputs WHERE output = ANY ($1) OR seen > now() - interval '7 days'
        UNION SELECT name, 0 FROM unnest($1::text[]) n (name) WHERE name NOT IN (SELECT output FROM outputs)) o
      WHERE cursor < (SELECT max(last) FROM blocks_\(day)) ORDER BY 1
      """, [PostgreSQLArray.text(names)], by: deadline)
    let bytes = try connection.query(
      """
      SELECT coalesce(sum(pg_total_relation_size(i.inhrelid)), 0)::bigint FROM pg_inherits i
        JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent IN ('blocks'::regclass, 'payloads'::regclass)
        AND right(c.relname::text, 8) < to_char((now() AT TIME ZONE 'UTC')::date - \(days), 'YYYYMMDD')
      """, by: deadline)
    return ((0..<outputs.count).map { (outputs.text($0, 0), outputs.int($0, 1)) }, bytes.int(0, 0))
  }

  /// Takes the oldest day of packet ids out, and notes that ids up to its end are forgotten.
  func detachPackets(_ facts: inout ServiceFacts, by deadline: Deadline) throws(PostgreSQLError) -> Bool {
    guard let day = try due("packets", olderThan: Self.idDays, &facts, by: deadline) else { return false }
    try connection.execute(
      """
      UPDATE forgotten SET packet = greatest(packet, prism_day_start(to_date('\(day)', 'YYYYMMDD') + 1));
      ALTER TABLE packets DETACH PARTITION packets_\(day)
      """, by: deadline)
    return true
  }

  /// Drops what was taken out, one table a call. - Returns: whether there was one.
  func dropDetached(by deadline: Deadline) throws(PostgreSQLError) -> Bool {
    let found = try connection.query(
      """
      SELECT c.relname::text FROM pg_class c WHERE c.relkind = 'r' AND pg_table_is_visible(c.oid) AND NOT c.relispartition
        AND c.relname ~ '^(blocks|payloads|packets)_[0-9]{8}$'
        AND right(c.relname::text, 8) < to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD') LIMIT 1
      """, by: deadline)
    guard found.count == 1 else { return false }
    try connection.execute("DROP TABLE \(found.text(0, 0))", by: deadline)
    return true
  }

  /// Of each stream whose device has a wrong clock, keeps the newest 1,024 ids.
  func pruneOthers(by deadline: Deadline) throws(PostgreSQLError) {
    try connection.execute(
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
      WHERE s.id IN (SELECT stream FROM newest);
      DELETE FROM replicas WHERE seen < now() - interval '1 day'
      """, by: deadline)
  }

  /// The oldest day that may be dropped, as `YYYYMMDD`.
  private func due(
    _ parent: String, olderThan days: Int, _ facts: inout ServiceFacts, by deadline: Deadline
  ) throws(PostgreSQLError) -> String? {
    let found = try connection.query(
      """
      SELECT right(c.relname::text, 8)::bigint FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = '\(parent)'::regclass AND c.relname ~ '_[0-9]{8}$'
        AND right(c.relname::text, 8) < to_char((now() AT TIME ZONE 'UTC')::date - \(days), 'YYYYMMDD') ORDER BY 1
      """, by: deadline)
    let over = (0..<found.count).map { found.int($0, 0) }
    let due = try facts.due(parent, of: over, keptDays: days)
    return over.first { $0 <= due }.map { String($0) }
  }

  private func isAttached(_ table: String, by deadline: Deadline) throws(PostgreSQLError) -> Bool {
    let found = try connection.query(
      "SELECT relispartition FROM pg_class WHERE oid = to_regclass('\(table)')", by: deadline)
    return found.count == 1 && found.bool(0, 0)
  }
}
