/// The kind of the network, and the reason.
public struct NetworkReport: ControlMessage {
  /// `none`, `metered` or `unmetered`.
  public var kind = "?"
  /// Of the default route; nil without one.
  public var interface: String?
  /// For people; only in the answer to `network`.
  public var reason: String?

  public init() {}

  public static let fields: [ControlField<NetworkReport>] = [
    .init("kind", \.kind), .init("interface", \.interface), .init(ifPresent: "reason", \.reason),
  ]
}
