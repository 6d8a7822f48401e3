import PrismProtocol

/// The number of a namespace and kind: says which table its rows stand in, `m7` or `p7` for the namespace numbered 7.
///
/// A table each, so that every insert is an append without an index to keep, and a claim never sees the backlog of
/// another namespace.
struct QueueID: Hashable, Sendable {
  let namespace: Int
  let kind: ReportKind

  /// In memory, and in `kind` columns.
  static func number(of kind: ReportKind) -> Int { kind == .meta ? 0 : 1 }
  static func kind(numbered number: Int) -> ReportKind { number == 0 ? .meta : .payload }

  var index: Int { namespace * 2 + Self.number(of: kind) }
  var table: String { (kind == .meta ? "m" : "p") + String(namespace) }
  var twin: QueueID { QueueID(namespace: namespace, kind: kind == .meta ? .payload : .meta) }
}

/// What a row's `flags` say.
struct RowFlags: OptionSet, Sendable {
  let rawValue: Int64
  /// The body has everything itself: no context is spliced in.
  static let selfContained = RowFlags(rawValue: 1)
  /// The body has a `CREATE_TIME` of its own.
  static let ownCreateTime = RowFlags(rawValue: 2)
  /// `report_id` came from a client and stands in `client_ids`.
  static let clientID = RowFlags(rawValue: 4)
  /// Its `created_time` is older than that of rows before it, so that expiry must look for it: it is in the small
  /// partial index. The highest flag: the index's condition is `flags >= 8`.
  static let late = RowFlags(rawValue: 8)
}

extension QueueID {
  /// Columns in the order that `StoredRow` reads them.
  static let columns = "id, type, created_time, context, flags, size, checksum, report_id, body"

  var columns: String { Self.columns + (kind == .payload ? ", payload" : "") }

  /// The namespace's name, its tables, and its part of the views. - Parameter namespaces: it among them.
  static func create(
    _ number: Int, among namespaces: [Int: NamespaceName], _ connection: SQLiteConnection
  ) throws(SQLiteError) {
    let name = namespaces[number]?.text ?? ""
    try connection.insert(
      "namespaces",
      [.int(Int64(number)), .text(name), .int(RowSum.ofName(name, number: Int64(number), in: "namespaces"))])
    for kind in ReportKind.allCases {
      try connection.execute(QueueID(namespace: number, kind: kind).schema)
      try connection.execute(ArticleViews.adding(number, to: namespaces, kind: kind))
    }
  }

  var schema: String {
    """
    CREATE TABLE \(table) (
      id INTEGER PRIMARY KEY, type INTEGER NOT NULL, created_time INTEGER NOT NULL, context INTEGER NOT NULL,
      flags INTEGER NOT NULL, size INTEGER NOT NULL, checksum INTEGER NOT NULL, report_id TEXT,
      body BLOB NOT NULL\(kind == .payload ? ", payload BLOB NOT NULL" : ""));
    CREATE INDEX \(table)_late ON \(table) (created_time) WHERE flags >= 8;
    """
  }
}
