import PrismProtocol
import PrismSQLite

/// The tables of one namespace.
enum QueueTables {
  /// Inserts the namespace's name and makes its tables and its part of the views. - Parameter namespaces: it among them.
  /// - Parameter tableCount: of each queue.
  static func create(
    _ number: Int, among namespaces: [Int: NamespaceName], _ connection: SQLiteConnection,
    _ tableCount: (QueueID) -> Int = { _ in 1 }
  ) throws(SQLiteError) {
    let name = NameRecord(.namespaces, number: Int64(number), name: namespaces[number]?.text ?? "")
    try connection.insertOrIgnore(name, into: name.table.rawValue)
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
    try connection.execute(ReportViews.group(of: queue.namespace, among: namespaces, kind: queue.kind, tableCount))
  }

  /// Makes the views again, of namespaces with one table a queue.
  static func renewViews(_ connection: SQLiteConnection) throws(SQLiteError) {
    var namespaces: [Int: NamespaceName] = [:]
    let select = try connection.prepare("SELECT \(NameRecord.Column.list) FROM \(NameRecord.Table.namespaces.rawValue)")
    try select.forEachRow(of: NameRecord.Column.self) { row in
      guard let record = NameRecord(row, in: .namespaces), let name = NamespaceName(record.name) else { return }
      namespaces[Int(record.number)] = name
    }
    for newest in ReportViews.oneOfEachGroup(namespaces) {
      for kind in RowKind.reports {
        try connection.execute(ReportViews.adding(newest, to: namespaces, kind: kind))
      }
    }
  }

  private enum IndexColumn: String, SQLiteColumn { case name }

  /// Version 7 finds old rows by their sequence.
  static func dropLateIndexes(_ connection: SQLiteConnection) throws(SQLiteError) {
    var names: [String] = []
    let select = try connection.prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'index' AND name GLOB '[mp][0-9]*_late'")
    try select.forEachRow(of: IndexColumn.self) { names.append($0.text(.name)) }
    for name in names { try connection.execute("DROP INDEX \(name)") }
  }

  private static func schema(_ table: RowTable) -> String {
    """
    CREATE TABLE \(table.name) (
      id INTEGER PRIMARY KEY, type INTEGER NOT NULL, created_time INTEGER NOT NULL, context INTEGER NOT NULL,
      flags INTEGER NOT NULL, size INTEGER NOT NULL, checksum INTEGER NOT NULL, report_id TEXT,
      body BLOB NOT NULL\(table.queue.kind.hasPayload ? ", payload BLOB NOT NULL" : ""));
    """
  }
}
