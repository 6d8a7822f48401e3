public import PrismProtocol

/// One namespace's rows of one kind, as `prismctl status` shows them.
public struct QueueStatus: Sendable, Equatable {
  /// The accounts of every row that was ever stored.
  public var ledger: Ledger
  /// On disk, of waiting, claimed and dead rows.
  public var bytes: Int
  /// How long the oldest row is held that waits or is in flight; nil if there is no such row.
  public var oldestAge: Duration?
  /// Reports of the namespace that filters kept from becoming rows; of metas only.
  public var filtered = FilterCounts()
  /// The namespace's last expiry since the start; nil: nothing expired; of metas only.
  public var expiry: Expiry?
  public init(ledger: Ledger, bytes: Int, oldestAge: Duration?) {
    (self.ledger, self.bytes, self.oldestAge) = (ledger, bytes, oldestAge)
  }
}

/// The last time that rows of a namespace expired.
public struct Expiry: Sendable, Equatable {
  /// Metas and payloads, waiting ones and dead letters.
  public var rows: Int
  /// By the wall clock of that time.
  public var unixMilliseconds: Int64
  /// How long prism held the oldest of them, in time that passed with power.
  public var heldHours: Int
}
