public import PrismProtocol

/// One namespace's rows of one kind, as `prismctl status` shows them.
public struct QueueStatus: Sendable, Equatable {
  /// The accounts of every row that was ever stored.
  public var ledger: Ledger
  /// On disk, of waiting, claimed and dead rows.
  public var bytes: Int
  /// The same of kept rows.
  public var keptBytes = 0
  /// Kept rows in memory with their bytes, and those that were lost with the machine's power; in the ledger as `overwritten`.
  public var inMemory = KeptInMemory()
  /// Waiting rows that something on the way did not let through: others go on.
  public var setBack = 0
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

/// The ring in memory of one namespace and kind.
public struct KeptInMemory: Sendable, Equatable {
  /// Kept rows, and those that were lost with the machine's power.
  public var rows = 0, lost = 0
  /// Of kept rows.
  public var bytes = 0

  public init(rows: Int = 0, bytes: Int = 0, lost: Int = 0) { (self.rows, self.bytes, self.lost) = (rows, bytes, lost) }
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
  /// Records that are kept though the store which answers does not have them.
  public var kept = 0
}

/// The rows and counts that are left of a namespace when a program starts.
public struct NamespaceRemains: Sendable {
  /// By key.
  public var notes: [String: [UInt8]]
  /// Some wait, or are in a packet that was not settled.
  public var hasReports: Bool
  /// The same of changes of records.
  public var hasRecords: Bool

  public init(notes: [String: [UInt8]], hasReports: Bool, hasRecords: Bool = false) {
    (self.notes, self.hasReports, self.hasRecords) = (notes, hasReports, hasRecords)
  }

  /// Of one that never stored anything.
  public static let none = Self(notes: [:], hasReports: false)
}

/// Rows of a namespace that wait or are on their way, by type.
public struct TypeCounts: Sendable, Equatable {
  /// Metas by type.
  public var metas: [ReportType: Int] = [:]
  /// Payloads by type.
  public var payloads: [ReportType: Int] = [:]
  /// false: there were more rows than could be looked at; the counts are the least.
  public var isComplete = true

  public init() {}
}
