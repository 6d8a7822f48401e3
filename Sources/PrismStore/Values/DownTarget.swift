public import PrismProtocol

/// A table that the server's changes are brought to, as the configuration declares it now.
public struct DownTarget: Sendable {
  /// The namespace of the table.
  public var namespace: NamespaceName
  /// The table itself.
  public var table: RecordTable
  /// All tables of the namespace: a deletion also deletes the records that refer to it.
  public var tables: [RecordTable]
  /// How far this device's clock is ahead of the server's, in milliseconds; 0 if that is not known.
  public var clockAheadMilliseconds: Int64
  /// This device's operations on the table that had their answer when the question was asked (`RecordReading.settled`): of
  /// a later one the answer may know nothing, and is not executed. nil: it is.
  public var settledBefore: Int?
  /// The store that answers; nil: it tells no identity.
  public var store: StoreMark?
  /// The store never had the table.
  public var isUnheard = false

  public init(
    _ table: RecordTable, of namespace: NamespaceName, tables: [RecordTable], clockAheadMilliseconds: Int64 = 0
  ) {
    (self.namespace, self.table, self.tables) = (namespace, table, tables)
    self.clockAheadMilliseconds = clockAheadMilliseconds
  }
}

/// Operations on a table, in the order of their numbers.
public struct DownPage: Sendable {
  /// At most `DownOperation.countMax`.
  public var operations: [DownOperation]
  /// The number after which was asked.
  public var after: Int64
  /// The number for the next question, if all are executed.
  public var sequence: Int64
  /// All other tables have executed what the server did up to this number: no operation up to it is still missing.
  public var othersThrough: Int64

  public init(operations: [DownOperation], after: Int64, sequence: Int64, othersThrough: Int64) {
    (self.operations, self.after, self.sequence) = (operations, after, sequence)
    self.othersThrough = othersThrough
  }
}

/// The outcome of the server's changes.
public struct DownOutcome: Sendable, Equatable {
  /// Why no more of them were executed.
  public enum End: Sendable, Equatable {
    /// All were.
    case done
    /// The operation with this number waits for one of another table.
    case waits(before: Int64)
    /// The table holds as many records as it may.
    case tableFull
    /// An operation of this device on one of the records has no answer yet.
    case inFlight
    /// Another answer was executed meanwhile, or the table was declared in another way: it is to be asked for again.
    case outdated
    /// The server answered an operation of this device since the question: the table is to be asked for again.
    case overtaken
    /// The fields of a record are no object with each key once, or a whole table has an id twice.
    case unreadable
  }

  /// Conflicts that one commit describes at most; all are counted.
  public static let clashesMax = 100

  /// Why no more of them were executed.
  public var end: End
  /// Operations that were executed.
  public var executed = 0
  /// Records that a whole answer lacks, and that are here still: the absence is not believed.
  public var kept = 0
  /// Conflicts, the first ones.
  public var clashes: [RecordClash] = []
  /// Tables that were changed, with those of records that were deleted because they referred to others.
  public var changed: Set<RecordTableName> = []

  public init(_ end: End) { self.end = end }
}

/// How far a table is in step with the server.
public struct DownStanding: Sendable, Equatable {
  /// The next question asks after this number; nil: for all records.
  public var after: Int64?
  /// When the server last said that this is all; milliseconds since 1970, nil: never.
  public var heldTime: Int64?
  /// Records that the server keeps here.
  public var rows: Int
  /// Conflicts in which this device's change, or the server's, was kept.
  public var keptLocal: Int, keptRemote: Int
}
