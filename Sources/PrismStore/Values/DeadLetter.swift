public import PrismProtocol

/// A report that the collector can't take, laid aside (docs/delivery.md).
public struct DeadLetter: Sendable, Equatable {
  /// By which it is shown, queued again or dropped.
  public var number: Int
  public var namespace: NamespaceName
  public var kind: RowKind
  public var type: String
  public var reportID: String
  /// Who reported it; nil: a version of prism stored it that did not keep that.
  public var userID: UInt32?
  /// Milliseconds since 1970.
  public var createdTime: Int64
  public var packet: PacketID
  public var cause: Disposition.DeadCause
  /// Bytes of meta and payload.
  public var bytes: Int
}

/// A dead letter with its whole meta and its payload.
public typealias DeadLetterContent = (letter: DeadLetter, meta: [UInt8], payload: [UInt8]?)

/// Which dead letters are meant.
public enum DeadLetterSelection: Sendable, Equatable {
  case number(Int)
  /// nil: of every namespace.
  case all(NamespaceName?)
}

/// Which stored reports are removed (`prismctl remove`).
public enum RemovalSelection: Sendable, Equatable {
  case all
  /// So many reports, with their payloads.
  case oldest(Int)
  case latest(Int)
  /// Created more than so many days ago.
  case olderThan(days: Int)
  /// The one of this id, made here or given by its client.
  case report(String)
}
