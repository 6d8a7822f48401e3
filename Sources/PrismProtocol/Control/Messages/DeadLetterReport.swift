/// A dead letter, in the answers to `dead-list` and `dead-show`.
public struct DeadLetterReport: ControlMessage {
  /// The number by which `dead-show`, `dead-requeue` and `dead-drop` name it.
  public var id = 0
  /// The report that was refused, and the packet that carried it.
  public var namespace = "?", kind = "?", type = "?", reportId = "?", packetId = "?"
  /// The collector's answer.
  public var status = 0
  /// The collector's message, and the time of the refusal (RFC 3339).
  public var message = "", time = ""
  /// Attempts to deliver it, and its size.
  public var attempts = 0, bytes = 0
  /// The user who reported it; nil if that is no longer known.
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
