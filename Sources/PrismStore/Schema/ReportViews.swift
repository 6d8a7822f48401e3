import PrismProtocol
import PrismSQLite

/// The views `v_meta` and `v_payload`: the rows under the source article's names (docs/store.md), for people who open
/// the database with the `sqlite3` shell. `meta` is what a packet would carry, byte for byte, as `MetaSplicing` says
/// it.
///
/// SQLite takes at most 500 tables in one union, so they are united in groups first.
enum ReportViews {
  private static let namespacesPerGroup = 40

  /// SQL that shows `namespaces[newest]` too; the others are shown already.
  /// - Parameter tableCount: of each queue.
  static func adding(
    _ newest: Int, to namespaces: [Int: NamespaceName], kind: RowKind, _ tableCount: (QueueID) -> Int = { _ in 1 }
  ) -> String {
    let view = "v_" + kind.name
    let groups = Set(namespaces.keys.map { $0 / namespacesPerGroup }).sorted()
    return """
      DROP VIEW IF EXISTS \(view);
      \(group(of: newest, among: namespaces, kind: kind, tableCount))
      CREATE VIEW \(view) AS \(groups.map { "SELECT * FROM \(view)_\($0)" }.joined(separator: " UNION ALL "));
      """
  }

  /// SQL that shows the namespaces of one group with the tables that they have now.
  static func group(
    of namespace: Int, among namespaces: [Int: NamespaceName], kind: RowKind, _ tableCount: (QueueID) -> Int
  ) -> String {
    let group = namespace / namespacesPerGroup
    let selects = namespaces.keys.filter { $0 / namespacesPerGroup == group }.sorted().map { number in
      select(QueueID(namespace: number, kind: kind), namespaces[number]!, tableCount)
    }
    let view = "v_\(kind.name)_\(group)"
    return """
      DROP VIEW IF EXISTS \(view);
      CREATE VIEW \(view) AS \(selects.joined(separator: " UNION ALL "));
      """
  }

  private static func select(
    _ queue: QueueID, _ namespace: NamespaceName, _ tableCount: (QueueID) -> Int
  ) -> String {
    let isBusiness = namespace.isBusiness
    let type = "(SELECT name FROM types WHERE number = r.type)"
    let monitorType = isBusiness ? "'\(namespace)-' || \(type)" : type
    let reportID =
      "coalesce(r.report_id, (SELECT value FROM facts WHERE name = 'epoch') || '-' || printf('%016x', r.id))"
    let context = "(SELECT ',' || CAST(members AS TEXT) FROM contexts c WHERE c.id = r.context AND length(members) > 0)"
    let meta = """
      '{"MONITOR_TYPE":"' || \(monitorType) || '","REPORT_ID":"' || \(reportID) || '"'
      || iif(r.flags & \(RowFlags.ownCreateTime.rawValue), '', ',"CREATE_TIME":' || r.created_time)
      || ',"IS_BIZ":\(isBusiness)' || coalesce(\(context), '')
      || iif(length(r.body) > 0, ',' || CAST(r.body AS TEXT), '') || '}'
      """
    let claimed = """
      EXISTS (SELECT 1 FROM packets p, json_each(p.members) m WHERE p.namespace = \(queue.namespace)
      AND p.kind = \(queue.kind.number) AND m.key % 2 = 0 AND r.id >= m.value
      AND r.id <= json_extract(p.members, '$[' || (m.key + 1) || ']'))
      """
    return """
      SELECT r.id & \(1 << RowID.sequenceBits - 1) AS id, \(reportID) AS report_id, \(monitorType) AS monitor_type,
      \(isBusiness ? 1 : 0) AS is_biz, r.created_time AS created_time, \(meta) AS meta,
      \(queue.kind.hasPayload ? "r.payload AS payload, " : "")'\(namespace)' AS namespace, \(claimed) AS is_used,
      r.size AS size FROM \(rows(queue, tableCount(queue))) r WHERE NOT \(isDelivered(queue))
      """
  }

  private static func rows(_ queue: QueueID, _ tableCount: Int) -> String {
    let tables = (0..<tableCount).map { RowTable(queue, number: $0).name }
    return tableCount == 1
      ? tables[0] : "(" + tables.map { "SELECT * FROM \($0)" }.joined(separator: " UNION ALL ") + ")"
  }

  /// Delivered rows stay in their table until all of it can be emptied.
  private static func isDelivered(_ queue: QueueID) -> String {
    """
    EXISTS (SELECT 1 FROM ledger l, json_each(l.spent) s WHERE l.namespace = \(queue.namespace)
    AND l.kind = \(queue.kind.number) AND s.key % 2 = 0 AND r.id >= s.value
    AND r.id <= json_extract(l.spent, '$[' || (s.key + 1) || ']'))
    """
  }
}

enum QueueTables {
  /// Inserts the namespace's name and makes its tables and its part of the views. - Parameter namespaces: it among them.
  /// - Parameter tableCount: of each queue.
  static func create(
    _ number: Int, among namespaces: [Int: NamespaceName], _ connection: SQLiteConnection,
    _ tableCount: (QueueID) -> Int = { _ in 1 }
  ) throws(SQLiteError) {
    let name = NameRecord(.namespaces, number: Int64(number), name: namespaces[number]?.text ?? "")
    try connection.insertOrIgnore(name, into: name.table)
    for queue in QueueID.all(of: number) {
      try connection.execute(schema(RowTable(queue, number: 0)))
      try connection.execute(ReportViews.adding(number, to: namespaces, kind: queue.kind, tableCount))
    }
  }

  /// Makes further tables of a queue, and shows them in the views. - Parameter tableCount: of each queue, with these.
  static func add(
    _ numbers: Range<Int>, of queue: QueueID, among namespaces: [Int: NamespaceName], _ connection: SQLiteConnection,
    _ tableCount: (QueueID) -> Int
  ) throws(SQLiteError) {
    for number in numbers { try connection.execute(schema(RowTable(queue, number: number))) }
    // A view sees no table of another file.
    guard !queue.isInMemory else { return }
    try connection.execute(ReportViews.group(of: queue.namespace, among: namespaces, kind: queue.kind, tableCount))
  }

  /// Makes the tables of a namespace in memory that are not there.
  static func createInMemory(_ namespace: Int, _ connection: SQLiteConnection) throws(SQLiteError) {
    for queue in QueueID.all(of: namespace) {
      try connection.execute(schema(RowTable(queue.inMemory, number: 0), "IF NOT EXISTS "))
    }
  }

  private static func schema(_ table: RowTable, _ condition: String = "") -> String {
    """
    CREATE TABLE \(condition)\(table.name) (
      id INTEGER PRIMARY KEY, type INTEGER NOT NULL, created_time INTEGER NOT NULL, context INTEGER NOT NULL,
      flags INTEGER NOT NULL, size INTEGER NOT NULL, checksum INTEGER NOT NULL, report_id TEXT,
      body BLOB NOT NULL\(table.queue.kind.hasPayload ? ", payload BLOB NOT NULL" : ""));
    """
  }
}
