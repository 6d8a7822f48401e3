/// A namespace whose packets do not get through: with `flush` and `wait`.
public struct HeldReport: ControlMessage {
  /// The namespace, and the cause.
  public var namespace = "?", cause = ""

  public init() {}

  public init(namespace: String, cause: String) { (self.namespace, self.cause) = (namespace, cause) }

  public static let fields: [ControlField<HeldReport>] = [.init("namespace", \.namespace), .init("cause", \.cause)]
}
