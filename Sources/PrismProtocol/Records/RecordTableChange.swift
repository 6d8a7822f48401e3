/// A commit changed records of a table: those who watch it get this.
public struct RecordTableChange: Sendable, Equatable {
  /// Records that one change names at most.
  public static let idsMax = 100

  /// The namespace of the table.
  public var namespace: NamespaceName
  /// The table that changed.
  public var table: RecordTableName
  /// The table's number of changes after the commit.
  public var generation: Int64
  /// The records that changed, in the order of their first change; nil: more than `idsMax`, or it is not known which.
  public var ids: [RecordID]?

  public init(_ namespace: NamespaceName, _ table: RecordTableName, generation: Int64, ids: [RecordID]?) {
    (self.namespace, self.table, self.generation, self.ids) = (namespace, table, generation, ids)
  }

  /// Bytes that it holds in memory, about.
  public var bytes: Int { (ids ?? []).reduce(128) { $0 + 16 + $1.text.utf8.count } }
}
