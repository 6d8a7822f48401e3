import PrismProtocol
import PrismSQLite

/// The tables of one namespace.
enum QueueTables {
  /// Inserts the namespace's name and makes its tables and its part of the views. - Parameter namespaces: it among them.
  static func create(
    _ number: Int, among namespaces: [Int: NamespaceName], _ connection: SQLiteConnection
  ) throws(SQLiteError) {
    let name = NameRecord(.namespaces, number: Int64(number), name: namespaces[number]?.text ?? "")
    try connection.insertOrIgnore(name, into: name.table.rawValue)
    for queue in QueueID.all(of: number) {
      try connection.execute(schema(queue))
      try connection.execute(ReportViews.adding(number, to: namespaces, kind: queue.kind))
    }
  }

  private static func schema(_ queue: QueueID) -> String {
    """
    CREATE TABLE \(queue.table) (
      id INTEGER PRIMARY KEY, type INTEGER NOT NULL, created_time INTEGER NOT NULL, context INTEGER NOT NULL,
      flags INTEGER NOT NULL, size INTEGER NOT NULL, checksum INTEGER NOT NULL, report_id TEXT,
      body BLOB NOT NULL\(queue.kind.hasPayload ? ", payload BLOB NOT NULL" : ""));
    CREATE INDEX \(queue.table)_late ON \(queue.table) (created_time) WHERE flags >= 8;
    """
  }
}
