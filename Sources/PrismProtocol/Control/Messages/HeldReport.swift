/// A namespace that only an operator can get going again, in the last line of `flush` with `wait`.
public struct HeldReport: ControlMessage {
  /// The namespace that is held, and the cause.
  public var namespace = "?", cause = ""

  public init() {}

  public init(namespace: String, cause: String) { (self.namespace, self.cause) = (namespace, cause) }

  public static let fields: [ControlField<HeldReport>] = [.init("namespace", \.namespace), .init("cause", \.cause)]
}
