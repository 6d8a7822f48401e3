import PrismBase
import PrismPacket
import PrismProtocol
import PrismSQLite

/// Dictionaries in `dictionaries.db`, beside the collector's database.
actor SQLiteDictionaryStore: DictionaryStore {
  private static let schema = """
    CREATE TABLE IF NOT EXISTS dictionaries (
      namespace TEXT NOT NULL, id INTEGER NOT NULL, made_time INTEGER NOT NULL, content BLOB NOT NULL,
      PRIMARY KEY (namespace, id));
    """

  private enum Column: String, SQLiteColumn {
    case madeTime = "made_time"
    case content
  }

  private enum Name: String, SQLiteColumn {
    case namespace
  }

  private let executor = DispatchQueueExecutor(label: "prism.collector.dictionaries")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let connection: SQLiteConnection

  /// - Parameter folder: the state folder; the file is made if it is missing.
  init(folder: String) throws(SQLiteError) {
    connection = try SQLiteConnection(.init(path: folder + "/dictionaries.db"))
    try connection.execute("PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
    try connection.execute(Self.schema)
  }

  func newest(of namespace: NamespaceName) throws(StoreFailure) -> KeptDictionary? {
    try perform { () throws(SQLiteError) in
      let select = try connection.prepare(
        """
        SELECT \(Column.list) FROM dictionaries WHERE namespace = :namespace ORDER BY made_time DESC, id LIMIT 1
        """)
      select.bind(":namespace", namespace.text)
      return try first(select)
    }
  }

  func find(_ id: UInt32, of namespace: NamespaceName) throws(StoreFailure) -> CompressionDictionary? {
    try perform { () throws(SQLiteError) in
      let select = try connection.prepare(
        "SELECT \(Column.list) FROM dictionaries WHERE namespace = :namespace AND id = :id")
      select.bind(":namespace", namespace.text)
      select.bind(":id", Int64(id))
      return try first(select)?.dictionary
    }
  }

  func namespaces(countMax: Int) throws(StoreFailure) -> [NamespaceName] {
    try perform { () throws(SQLiteError) in
      let select = try connection.prepare(
        "SELECT namespace FROM dictionaries GROUP BY 1 ORDER BY max(made_time) DESC LIMIT :countMax")
      select.bind(":countMax", Int64(countMax))
      var names: [NamespaceName] = []
      try select.forEachRow(of: Name.self) { row in NamespaceName(row.text(.namespace)).map { names.append($0) } }
      return names
    }
  }

  func keep(_ kept: KeptDictionary, of namespace: NamespaceName) throws(StoreFailure) {
    try perform { () throws(SQLiteError) in
      try connection.transaction { () throws(SQLiteError) in
        let insert = try connection.prepare("REPLACE INTO dictionaries VALUES (:namespace, :id, :time, :content)")
        insert.bind(":namespace", namespace.text)
        insert.bind(":id", Int64(kept.dictionary.id))
        insert.bind(":time", kept.madeTime)
        insert.bind(":content", kept.dictionary.bytes)
        try insert.run()
        let forget = try connection.prepare(
          """
          DELETE FROM dictionaries WHERE namespace = :namespace AND id IN (SELECT id FROM dictionaries
            WHERE namespace = :namespace ORDER BY made_time DESC, id LIMIT -1 OFFSET \(KeptDictionary.countMax))
          """)
        forget.bind(":namespace", namespace.text)
        try forget.run()
      }
    }
  }

  private func first(_ select: SQLiteStatement) throws(SQLiteError) -> KeptDictionary? {
    var found: KeptDictionary?
    try select.forEachRow(of: Column.self) { row in
      guard let dictionary = CompressionDictionary(row.bytes(.content)) else { return }
      found = KeptDictionary(dictionary: dictionary, madeTime: row.int64(.madeTime))
    }
    return found
  }

  private func perform<Result>(_ body: () throws(SQLiteError) -> Result) throws(StoreFailure) -> Result {
    do throws(SQLiteError) { return try body() } catch { throw .unavailable("dictionaries.db: \(error.description)") }
  }
}
