public import PrismProtocol

/// A table of records in `NamespaceReport`. `put` is the sum of the counts behind it (docs/records.md).
public struct RecordTableReport: ControlMessage {
  /// Records in the table, those that wait for their deletion among them.
  public var records = 0
  /// Changes that programs ever made: puts, patches and deletions.
  public var put = 0
  /// Changes that the server carried out.
  public var confirmed = 0
  /// Changes that became part of a later one before they were sent.
  public var merged = 0
  /// Changes that wait for an operation.
  public var waiting = 0
  /// Changes whose operation has no answer yet.
  public var inFlight = 0
  /// Changes that the server refused.
  public var refused = 0
  /// Changes that were lost with a damaged database.
  public var corrupt = 0
  /// The namespace still declares the table; changes of another one wait.
  public var isDeclared = true
  /// Seconds since the server last said that its changes are all here; nil: never, or the table is `up`.
  public var ageSeconds: Int?
  /// Records that both sides changed: how often the change made here held, and how often the server's.
  public var keptLocal = 0, keptRemote = 0
  /// Records that are here although the server's store lacks them or deleted them, as of its last whole answer: it is another
  /// store, or it knows less than before.
  public var kept = 0
  /// Why the server's changes can't be brought here; nil: they can, or were not asked for yet.
  public var fault: String?

  public init() {}

  /// The counts that `put` is the sum of, with their words; those that are 0 left out.
  public var parts: [(word: String, count: Int)] {
    [
      ("confirmed", confirmed), ("merged", merged), ("waiting", waiting), ("in flight", inFlight), ("refused", refused),
      ("corrupt", corrupt),
    ].filter { $0.1 > 0 }
  }
}
