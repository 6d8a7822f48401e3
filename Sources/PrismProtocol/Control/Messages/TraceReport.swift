/// A row of the answer to `trace`. Members that do not apply to its state are left out.
public struct TraceReport: ControlMessage {
  public var namespace = "?", kind = "?"
  /// Who reported it; nil if that is not known any more.
  public var userId: Int?
  /// `waiting`, `claimed`, `delivered` or `dead`.
  public var state = "?"
  public var createdTime: String?
  /// Of the packet that the row was claimed for.
  public var packetId: String?, packetTime: String?
  public var claimedTime: String?, deliveredTime: String?
  /// Of a dead letter.
  public var id: Int?, status: Int?
  public var message: String?, time: String?
  public var attempts: Int?
  /// The collector had it already.
  public var duplicate: Bool?
  /// Of the namespace and kind, if it came after the report.
  public var lastFailure: FailureReport?

  public init() {}

  public static let fields: [ControlField<TraceReport>] = [
    .init("namespace", \.namespace), .init("kind", \.kind), .init(ifPresent: "userId", \.userId),
    .init("state", \.state),
    .init(ifPresent: "createdTime", \.createdTime), .init(ifPresent: "packetId", \.packetId),
    .init(ifPresent: "packetTime", \.packetTime), .init(ifPresent: "claimedTime", \.claimedTime),
    .init(ifPresent: "deliveredTime", \.deliveredTime), .init(ifPresent: "id", \.id),
    .init(ifPresent: "status", \.status), .init(ifPresent: "message", \.message), .init(ifPresent: "time", \.time),
    .init(ifPresent: "attempts", \.attempts), .init(ifPresent: "duplicate", \.duplicate),
    .init(ifPresent: "lastFailure", \.lastFailure),
  ]

  public var isOnItsWay: Bool { state == "waiting" || state == "claimed" }
}
