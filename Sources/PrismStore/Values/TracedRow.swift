public import PrismProtocol

/// Where one row of a report is, or went.
public struct TracedRow: Sendable, Equatable {
  /// The place of a row.
  public enum Place: Sendable, Equatable {
    case waiting
    /// In the ring.
    case kept
    case inFlight(PacketID, claimedTime: Int64)
    case dead(number: Int, PacketID, Disposition.DeadCause)
    /// Within the last 24 h.
    case delivered(PacketID, Disposition.Receipt)
    /// It left without a packet, in this run of the store: the account that counts it, and when.
    case dropped(Ledger.Account, unixMilliseconds: Int64)
  }

  /// The namespace of the report.
  public var namespace: NamespaceName
  /// The type of the report; nil once it was delivered or dropped: the row is gone.
  public var type: ReportType?
  /// The report that counts this one, if it was collapsed into an earlier one; nil: it has a row of its own.
  public var countedOn: String?
  /// The kind of the row.
  public var kind: RowKind
  /// The user who reported it; nil: not known (any more).
  public var userID: UInt32?
  /// The place of the row now.
  public var place: Place
  /// Milliseconds since 1970; nil once it was delivered: the row is gone.
  public var createdTime: Int64?
}
