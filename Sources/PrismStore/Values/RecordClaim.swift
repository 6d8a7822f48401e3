public import PrismProtocol

/// Which waiting changes of records the next packet may take.
public struct RecordClaim: Sendable {
  /// The tables whose changes may leave now.
  public var tables: [RecordTable]
  /// Changes that began to wait later are left for the next synchronization (`RecordReading.bound`).
  public var bound: Int64
  public init(tables: [RecordTable], bound: Int64) { (self.tables, self.bound) = (tables, bound) }
}
