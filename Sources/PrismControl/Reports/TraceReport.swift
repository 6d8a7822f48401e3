public import PrismProtocol

/// A row of the answer to `trace`. Members that do not apply to its state are left out.
public struct TraceReport: ControlMessage {
  /// The queue of the row.
  public var namespace = "?", kind = "?"
  /// The type of the report; nil once the row is gone.
  public var type: String?
  /// The id of the report that counts this one; nil: it was not collapsed.
  public var countedOn: String?
  /// The user who reported it; nil if that is no longer known.
  public var userId: Int?
  /// `waiting`, `kept`, `claimed`, `delivered`, `dead` or `dropped`.
  public var state = "?"
  /// The time of the report, RFC 3339; nil once the row is delivered and deleted.
  public var createdTime: String?
  /// Of the packet that the row was claimed for.
  public var packetId: String?, packetTime: String?
  /// The times of the claim and of the delivery, RFC 3339.
  public var claimedTime: String?, deliveredTime: String?
  /// Of a dead letter.
  public var id: Int?, status: Int?
  /// The collector's message and the time of the refusal, for a dead letter.
  public var message: String?, time: String?
  /// Attempts to deliver the packet.
  public var attempts: Int?
  /// The collector had it already.
  public var duplicate: Bool?
  /// Of a report that was dropped: the account of the ledger that counts it, as `expired`. `time` says when it left.
  public var cause: String?
  /// Of the namespace and kind, if it came after the report.
  public var lastFailure: FailureReport?

  public init() {}

  public static func leavesOut(_ key: String) -> Bool { true }

  /// Whether the row may still be delivered without an operator.
  public var isOnItsWay: Bool { state == "waiting" || state == "claimed" }
}
