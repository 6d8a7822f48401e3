public import PrismProtocol

/// A report that the collector can't take, kept for an operator (docs/delivery.md).
public struct DeadLetter: Sendable, Equatable {
  /// The number that `prismctl dead` shows, and takes to send it again or to drop it.
  public var number: Int
  /// The namespace of the report.
  public var namespace: NamespaceName
  /// The kind of the row.
  public var kind: RowKind
  /// The type of the report.
  public var type: String
  /// The id of the report.
  public var reportID: String
  /// The user who reported it; nil if the version of prism that stored it did not keep that.
  public var userID: UInt32?
  /// Milliseconds since 1970.
  public var createdTime: Int64
  /// The packet that the collector refused.
  public var packet: PacketID
  /// The refusal.
  public var cause: Disposition.DeadCause
  /// Bytes of meta and payload.
  public var bytes: Int
}

/// A dead letter with its whole meta and its payload.
public typealias DeadLetterContent = (letter: DeadLetter, meta: [UInt8], payload: [UInt8]?)

/// Which dead letters are meant.
public enum DeadLetterSelection: Sendable, Equatable {
  case number(Int)
  /// Those of a report id: one, unless several users or namespaces gave the same id.
  case report(String)
  /// nil: of every namespace.
  case all(NamespaceName?)
}

/// Which stored reports are removed (`prismctl remove`).
public enum RemovalSelection: Sendable, Equatable {
  case all
  /// This number of reports, with their payloads.
  case oldest(Int)
  case latest(Int)
  /// Created more than this number of days ago.
  case olderThan(days: Int)
  /// The one of this id, made here or given by its client.
  case report(String)
}
