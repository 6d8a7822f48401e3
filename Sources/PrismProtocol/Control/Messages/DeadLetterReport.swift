/// A dead letter, in the answers to `dead-list` and `dead-show`.
public struct DeadLetterReport: ControlMessage {
  public var id = 0
  public var namespace = "?", kind = "?", type = "?", reportId = "?", packetId = "?"
  /// The collector's answer.
  public var status = 0
  public var message = "", time = ""
  public var attempts = 0, bytes = 0
  /// Who reported it; nil if that is not known any more.
  public var userId: Int?
  /// Only of `dead-show`; the payload in base64.
  public var meta: JSONValue?, payload: String?

  public init() {}

  public static let fields: [ControlField<DeadLetterReport>] = [
    .init("id", \.id), .init("namespace", \.namespace), .init("kind", \.kind), .init("type", \.type),
    .init("reportId", \.reportId), .init("packetId", \.packetId), .init("status", \.status),
    .init("message", \.message), .init("time", \.time), .init("attempts", \.attempts), .init("bytes", \.bytes),
    .init(ifPresent: "userId", \.userId), .init(ifPresent: "meta", \.meta), .init(ifPresent: "payload", \.payload),
  ]
}
