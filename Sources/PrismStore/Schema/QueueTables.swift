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

  private static func schema(_ table: RowTable) -> String {
    """
    CREATE TABLE \(table.name) (
      id INTEGER PRIMARY KEY, type INTEGER NOT NULL, created_time INTEGER NOT NULL, context INTEGER NOT NULL,
      flags INTEGER NOT NULL, size INTEGER NOT NULL, checksum INTEGER NOT NULL, report_id TEXT,
      body BLOB NOT NULL\(table.queue.kind.hasPayload ? ", payload BLOB NOT NULL" : ""));
    """
  }
}
