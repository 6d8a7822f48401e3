import PrismBase
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite

/// Keeps dictionaries. Packets that were packed with one may come for as long as their sender holds them.
actor DictionaryStore {
  private enum Column: String, SQLiteColumn { case namespace, id, madeTime, content }

  private enum NameColumn: String, SQLiteColumn { case namespace }

  private let executor = DispatchQueueExecutor(label: "prism.collector.dictionaries")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  private let session: FleetSession

  init(_ database: FleetDatabase) { session = FleetSession(database) }

  /// The one that was made last; nil: the namespace has no dictionary.
  func newest(of namespace: NamespaceName) throws(StoreFailure) -> KeptDictionary? {
    try first("namespace = $1 ORDER BY made_time DESC, id LIMIT 1", [namespace.text])
  }

  /// nil: it is not kept, or not any more.
  func find(_ id: UInt32, of namespace: NamespaceName) throws(StoreFailure) -> CompressionDictionary? {
    try first("namespace = $1 AND id = $2", [namespace.text, Int64(id)])?.dictionary
  }

  /// Those with a dictionary, `countMax` at most, the newest first.
  func namespaces(countMax: Int) throws(StoreFailure) -> [NamespaceName] {
    try session.read {
      try $0.rows(
        of: NameColumn.self, "FROM dictionaries GROUP BY namespace ORDER BY max(made_time) DESC LIMIT $1", [countMax]
      ).compactMap { NamespaceName($0.text(.namespace)) }
    }
  }

  /// At rest when it returns. Past `KeptDictionary.countMax` of a namespace the oldest are dropped.
  func keep(_ kept: KeptDictionary, of namespace: NamespaceName) throws(StoreFailure) {
    try session.write { statements in
      try statements.insert(
        Column.self, into: "dictionaries",
        [namespace.text, Int64(kept.dictionary.id), kept.madeTime, kept.dictionary.bytes], onConflict: "DO NOTHING")
      try statements.run(
        """
        DELETE FROM dictionaries WHERE namespace = $1 AND id IN (SELECT id FROM dictionaries
          WHERE namespace = $1 ORDER BY made_time DESC, id LIMIT 1000 OFFSET \(KeptDictionary.countMax))
        """, [namespace.text])
    }
  }

  private func first(_ condition: String, _ values: [any SQLConvertible]) throws(StoreFailure) -> KeptDictionary? {
    try session.read {
      guard let row = try $0.first(of: Column.self, "FROM dictionaries WHERE \(condition)", values),
        let dictionary = CompressionDictionary(row.bytes(.content))
      else { return nil }
      return KeptDictionary(dictionary: dictionary, madeTime: row.int64(.madeTime))
    }
  }
}

struct KeptDictionary: Sendable, Equatable {
  /// Of one namespace: one is made a day at most, and a packet may be 40 days old.
  static let countMax = 41

  var dictionary: CompressionDictionary
  /// Milliseconds since 1970.
  var madeTime: Int64
}
