import PrismBase
import PrismPacket
import PrismProtocol

/// Dictionaries in PostgreSQL, for all replicas.
actor PostgreSQLDictionaryStore: DictionaryStore {
  static let schema = """
    CREATE TABLE dictionaries (namespace text COLLATE "C", id bigint, made_time bigint NOT NULL, content bytea NOT NULL,
      PRIMARY KEY (namespace, id));

    """

  private let executor = DispatchQueueExecutor(label: "prism.collector.dictionaries")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private var session: PostgreSQLSession

  /// Connects with the first call.
  init(_ target: PostgreSQLTarget) { session = PostgreSQLSession(target) }

  func newest(of namespace: NamespaceName) throws(StoreFailure) -> KeptDictionary? {
    try first("namespace = $1 ORDER BY made_time DESC, id LIMIT 1", [namespace.text])
  }

  func find(_ id: UInt32, of namespace: NamespaceName) throws(StoreFailure) -> CompressionDictionary? {
    try first("namespace = $1 AND id = $2", [namespace.text, String(id)])?.dictionary
  }

  func namespaces(countMax: Int) throws(StoreFailure) -> [NamespaceName] {
    try perform { (connection, by) throws(PostgreSQLError) in
      let rows = try connection.query(
        "SELECT namespace FROM dictionaries GROUP BY 1 ORDER BY max(made_time) DESC LIMIT \(countMax)", [], by: by)
      return (0..<rows.count).compactMap { NamespaceName(rows.text($0, 0)) }
    }
  }

  func keep(_ kept: KeptDictionary, of namespace: NamespaceName) throws(StoreFailure) {
    try perform { (connection, by) throws(PostgreSQLError) in
      _ = try connection.query(
        "INSERT INTO dictionaries VALUES ($1, $2, $3, decode($4, 'hex')) ON CONFLICT DO NOTHING",
        [
          namespace.text, String(kept.dictionary.id), String(kept.madeTime), Hex.encode(kept.dictionary.bytes),
        ], by: by)
      _ = try connection.query(
        """
        DELETE FROM dictionaries WHERE namespace = $1 AND id IN (SELECT id FROM dictionaries
          WHERE namespace = $1 ORDER BY made_time DESC, id OFFSET \(KeptDictionary.countMax))
        """, [namespace.text], by: by)
    }
  }

  private func first(_ condition: String, _ values: [String?]) throws(StoreFailure) -> KeptDictionary? {
    try perform { (connection, by) throws(PostgreSQLError) in
      let rows = try connection.query(
        "SELECT made_time, encode(content, 'hex') FROM dictionaries WHERE \(condition)", values, by: by)
      guard rows.count == 1,
        let dictionary = Hex.decode(rows.text(0, 1)).flatMap({ CompressionDictionary($0) })
      else { return nil }
      return KeptDictionary(dictionary: dictionary, madeTime: rows.int(0, 0))
    }
  }

  private func perform<Result>(
    _ body: (PostgreSQLConnection, Deadline) throws(PostgreSQLError) -> Result
  ) throws(StoreFailure) -> Result {
    do throws(PostgreSQLSetup.Refusal) { return try session.perform(body) } catch {
      throw .unavailable(error.description)
    }
  }
}
