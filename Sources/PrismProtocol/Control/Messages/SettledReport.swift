/// The effect of one line of `receipts.ndjson`: the answer to `carry-settle` has one for each.
public struct SettledReport: ControlMessage {
  /// The packet.
  public var packetId = "?", namespace = "?", kind = "?"
  /// `delivered`, `waits`, `split`, `dead`, `kept` or `unknown`.
  public var state = "?"
  /// Of `kept`.
  public var cause: String?

  public init() {}

  public static let fields: [ControlField<SettledReport>] = [
    .init("packetId", \.packetId), .init("namespace", \.namespace), .init("kind", \.kind), .init("state", \.state),
    .init(ifPresent: "cause", \.cause),
  ]
}
