public import PrismProtocol

/// A table of records as it is.
public struct RecordTableStatus: Sendable, Equatable {
  /// The name of the table.
  public var name: RecordTableName
  /// Records in it, those that wait for their deletion among them.
  public var records: Int
  /// Its changes: `stored` are all, `delivered` confirmed, `removed` merged, `claimed` in flight, `dead` refused.
  public var ledger: Ledger
  /// Counts the commits that changed it.
  public var generation: Int64
  /// How far it is in step with the server's changes; nil: they were never asked for.
  public var down: DownStanding?
}
